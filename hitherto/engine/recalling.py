"""What a context recalls for a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hitherto.core.manifest import Span
from hitherto.core.message import Kind, Message, Role
from hitherto.core.phrases import triggered, without
from hitherto.core.policy import Policy
from hitherto.core.recalled import Recollection, Why
from hitherto.core.render import Recalled as RecalledRender
from hitherto.core.view import View
from hitherto.core.wanted import EntryKind, Wanted
from hitherto.engine.asked import checked_k, checked_kinds, checked_share, checked_switch
from hitherto.engine.place import Place
from hitherto.engine.recall import Looked, Recaller
from hitherto.engine.recollections import recollection_of
from hitherto.errors import InvalidInput, StoreError
from hitherto.logs import logger

log = logger("hitherto.recall")

SAID = frozenset(EntryKind) - {EntryKind.FACT}
"""Of what contexts recall; facts have a place of their own in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalling:
    """What a context is to recall: at most `k` things, of a score of at least `least`, that take at most `share` of the
    budget (None: the setting `recall_share`). `elsewhere`: from the scope's other conversations too. `every_agent`:
    from those of the user's other agents too."""

    k: int = 8
    share: float | None = None
    least: float = 0.3
    kinds: frozenset[EntryKind] = SAID
    elsewhere: bool = True
    every_agent: bool = False

    def __post_init__(self) -> None:
        checked_k(self.k)
        checked_share(self.least, "least", ends=True)
        if self.share is not None:
            checked_share(self.share, "share", ends=False)
        object.__setattr__(self, "kinds", checked_kinds(self.kinds))
        if EntryKind.FACT in self.kinds:
            raise InvalidInput(
                "contexts show facts in a place of their own (see the setting facts); leave them out here"
            )
        for name in ("elsewhere", "every_agent"):
            checked_switch(getattr(self, name), name)


def recalling_of(value: object) -> Recalling | None:
    """What a caller of `context` gave: nothing, whether, how many, or all of it. Raises InvalidInput."""
    match value:
        case None | Recalling():
            return value
        case bool():
            return Recalling() if value else None
        case int():
            return Recalling(k=value)
        case _:
            raise InvalidInput(f"recall is {value!r}; give True, a number of things to recall, or a Recalling(…)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """One reason to recall something, and what is asked."""

    why: Why
    question: str
    wanted: Wanted
    k: int
    least: float


def recalls(place: Place, policy: Policy, asked: Recalling | None, cross_session: bool | None) -> bool:
    """Whether anything is to be recalled, whatever is asked."""
    crossing = place.parts.settings.cross_session != "off" if cross_session is None else cross_session
    return asked is not None or crossing or policy.recalls


def purposes(
    place: Place,
    policy: Policy,
    shown: View,
    question: str,
    *,
    asked: Recalling | None,
    cross_session: bool | None,
    subject: str | None,
) -> list[Purpose]:
    """What is to be recalled: by the request, the policy's renders, and the settings for other conversations. A
    conversation about a `subject` gets the digests of its user and that subject."""
    scope, settings = place.scope, place.parts.settings
    hidden = {place.id: shown.stop}
    but = frozenset([shown.digest.id] if shown.digest is not None else [])
    found: list[Purpose] = []
    if asked is not None:
        wanted = Wanted(
            scope=scope,
            every_agent=asked.every_agent,
            kinds=asked.kinds,
            conversation=None if asked.elsewhere else place.id,
            hidden=hidden,
            but=but,
        )
        found.append(Purpose(why=Why.REQUEST, question=question, wanted=wanted, k=asked.k, least=asked.least))
    for stage in policy.stages:
        if isinstance(stage.render, RecalledRender):
            digests = frozenset({EntryKind.DIGEST})
            wanted = Wanted(scope=scope, kinds=digests, hidden=hidden, but=but, subject=subject)
            found.append(Purpose(why=Why.POLICY, question=question, wanted=wanted, k=stage.render.top_k, least=0.0))
    phrase = triggered(question, settings.search_triggers)
    if cross_session is None:
        triggers = settings.cross_session == "triggers" and phrase is not None
        cross_session = settings.cross_session == "always" or triggers
    if cross_session:
        question = question if phrase is None else without(question, phrase)
        wanted = Wanted(scope=scope, kinds=SAID, other_than=place.id)
        limit, least = settings.cross_session_limit, settings.relevance_threshold
        found.append(Purpose(why=Why.CROSS_SESSION, question=question, wanted=wanted, k=limit, least=least))
    return found


def question_of(messages: Sequence[Message]) -> str:
    """What the users' words among the messages ask; nothing where there are none."""
    said = [one.text for one in messages if one.role is Role.USER and one.kind is Kind.TEXT and one.text.strip()]
    return "\n".join(said)


async def looked(recaller: Recaller, wanted: Sequence[Purpose]) -> list[Looked | None]:
    """The first half of each search, all at once; None for one that the database could not answer."""

    async def look(one: Purpose) -> Looked | None:
        try:
            return await recaller.look(one.question, one.wanted)
        except StoreError as error:
            log.warning("Nothing could be recalled: %s", error, tenant=one.wanted.scope.tenant)
            return None

    return list(await asyncio.gather(*(look(one) for one in wanted)))


async def found(
    place: Place,
    recaller: Recaller,
    wanted: Sequence[Purpose],
    begun: Sequence[Looked | None],
    *,
    visible: Sequence[Span],
    missing: list[str],
) -> list[Recollection]:
    """What was found for each purpose, the best first, nothing twice, and nothing of which `visible` has a part."""
    recollections: list[Recollection] = []
    taken: set[tuple[object, ...]] = set()
    for purpose, begun_one in zip(wanted, begun, strict=True):
        if begun_one is None:
            _miss(missing, ("recall",))
            continue
        hidden = _hidden(place.id, visible, purpose.wanted)
        try:
            answer = await recaller.find(
                begun_one, hidden, k=purpose.k + len(taken) + _seen(visible), least=purpose.least, rerank=True
            )
        except StoreError as error:
            log.warning("Nothing could be recalled: %s", error, tenant=place.scope.tenant)
            _miss(missing, ("recall",))
            continue
        _miss(missing, [name for name in answer.missing if name != "vectors"])  # a lag, and no part that is down
        mine: list[Recollection] = []
        for hit in answer.hits:
            if len(mine) == purpose.k:
                break
            if purpose.why is Why.CROSS_SESSION and hit.conversation is None:
                continue  # a user's own documents are no conversation
            one = await recollection_of(place, hit, purpose.why)
            if one is not None and _name(one) not in taken and not _in_sight(place, one, visible):
                taken.add(_name(one))
                mine.append(one)
        recollections += mine
    return recollections


def _hidden(conversation: str, visible: Sequence[Span], wanted: Wanted) -> Wanted:
    """Messages from the first on that is shown without a gap up to the end are not to be found again."""
    start = None
    for span in reversed(visible):
        if start is not None and span.end + 1 != start:
            break
        start = span.start
    if conversation not in wanted.hidden:
        return wanted
    return replace(wanted, hidden={conversation: wanted.hidden[conversation] if start is None else start})


def _seen(visible: Sequence[Span]) -> int:
    """How many messages may be found that are in sight though they do not stand at the end."""
    return min(sum(span.end - span.start + 1 for span in visible[:-1]), 50)


def _in_sight(place: Place, one: Recollection, visible: Sequence[Span]) -> bool:
    if (one.agent, one.conversation) != (place.scope.agent, place.id) or one.start is None or one.end is None:
        return False
    return any(span.start <= one.end and one.start <= span.end for span in visible)


def _name(one: Recollection) -> tuple[object, ...]:
    return (one.kind, one.agent, one.conversation, one.start, one.digest, one.document, one.passage)


def _miss(missing: list[str], names: Sequence[str]) -> None:
    missing += [name for name in names if name not in missing]
