"""What a context recalls: found for a question, or found again for a manifest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hitherto.core.group import groups
from hitherto.core.head import Head
from hitherto.core.manifest import Recalled, Span
from hitherto.core.message import Kind, Logged, Message, Role
from hitherto.core.phrases import triggered, without
from hitherto.core.policy import Policy
from hitherto.core.recalled import Recollection, Why
from hitherto.core.render import Recalled as RecalledRender
from hitherto.core.scope import Scope
from hitherto.core.speaker import speaker_of
from hitherto.core.view import View
from hitherto.core.wanted import EntryKind, Wanted
from hitherto.engine.asked import checked_k, checked_kinds, checked_share, checked_switch
from hitherto.engine.place import Place
from hitherto.engine.recall import Hit, Looked, Recaller
from hitherto.errors import InvalidInput, StoreError, Unreproducible
from hitherto.logs import logger
from hitherto.ports.index import TEXT
from hitherto.ports.store import Reading

log = logger("hitherto.recall")

_GROUP = 64
"""So many messages before and after a tool's are looked at for its group."""


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
            one = await _recollected(place, hit, purpose.why)
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


async def _recollected(place: Place, hit: Hit, why: Why) -> Recollection | None:
    """A hit as a context shows it; of a tool's message the whole group. None if it is gone meanwhile."""
    if hit.kind is EntryKind.MESSAGE and _of_a_tool(hit):
        assert hit.conversation is not None, "a message has its conversation"
        assert hit.start is not None, "and its place there"
        whole = await _group(place, hit.agent, hit.conversation, hit.start)
        return None if not whole else _of_messages(whole, hit.conversation, hit.agent, why, hit.score)
    return Recollection(
        why=why,
        kind=hit.kind,
        text=_cut(hit.text),
        said_at=hit.said_at,
        score=hit.score,
        conversation=hit.conversation,
        agent=hit.agent or None,
        start=hit.start,
        end=hit.end,
        digest=hit.digest,
        document=hit.document,
        passage=hit.passage,
        title=hit.title,
        speaker=hit.author or hit.role,
    )


def _of_a_tool(hit: Hit) -> bool:
    return hit.role == Role.TOOL or "[calls " in hit.text


def _cut(text: str) -> str:
    return text if len(text) < TEXT else text[: TEXT - 1] + "…"


def _of_messages(
    members: Sequence[Logged], conversation: str, agent: str | None, why: Why, score: float
) -> Recollection:
    first = members[0]
    return Recollection(
        why=why,
        kind=EntryKind.MESSAGE,
        text=_cut("\n".join(one.message.text for one in members if one.message.text.strip())[:TEXT]),
        said_at=first.created_at,
        score=score,
        conversation=conversation,
        agent=agent or None,
        start=first.seq,
        end=members[-1].seq,
        speaker=speaker_of(first.message),
        members=tuple(one.seq for one in members),
    )


async def _group(place: Place, agent: str, conversation: str, seq: int) -> list[Logged]:
    """The live messages of the group that the message belongs to, without what stands between them."""
    scope = replace(place.scope, agent=agent or place.scope.agent)
    store = place.parts.store
    head = await store.head(scope, conversation)
    if head is None:
        return []
    reading = Reading(start=seq - _GROUP, stop=seq + _GROUP + 1, live_at=head.rev)
    near = [one for one in await store.messages(scope, conversation, head.ref, reading) if not one.erased]
    for group in groups(near, head.retracted):
        if any(member.seq == seq for member in group.members):
            return [member for member in group.members if member.seq >= head.view_start]
    return []


async def again(place: Place, says: Sequence[Recalled]) -> list[Recollection]:
    """What a manifest says was recalled. Raises Unreproducible where something of it is gone."""
    return [await _again(place, one) for one in says]


async def _again(place: Place, says: Recalled) -> Recollection:
    kind, scope = EntryKind(says.kind), replace(place.scope, agent=says.agent or place.scope.agent)
    found: Recollection | None = None
    match kind:
        case EntryKind.MESSAGE:
            found = await _messages_again(place, scope, says)
        case EntryKind.DIGEST:
            found = await _digest_again(place, scope, says)
        case EntryKind.PASSAGE:
            found = await _passage_again(place, scope, says)
        case EntryKind.FACT:
            found = None  # no context recalls any
    if found is None:
        raise Unreproducible(
            f"a {says.kind} that this context recalled ({says.conversation or says.document}, {says.start}) was erased "
            "since"
        )
    return found


async def _messages_again(place: Place, scope: Scope, says: Recalled) -> Recollection | None:
    name, start, end = says.conversation, says.start, says.end
    if name is None or start is None or end is None:
        return None
    head: Head | None = await place.parts.store.head(scope, name)
    if head is None:
        return None
    members = await place.parts.store.messages(scope, name, head.ref, Reading(start=start, stop=end + 1))
    if members and start != end:
        # As the group was when its last message came: results may have come since, and messages been taken back.
        then = members[-1].rev
        grouped = groups([one for one in members if one.live(then)], head.retracted)
        members = next((group.members for group in grouped if group.first == start), list[Logged]())
    if not members or any(one.erased for one in members):
        return None
    return _of_messages(members, name, says.agent, Why(says.why), says.score)


async def _digest_again(place: Place, scope: Scope, says: Recalled) -> Recollection | None:
    if says.conversation is None:
        return None
    rows = await place.parts.store.digests(scope, says.conversation)
    row = next((row for row in rows if row.id == says.digest), None)
    if row is None or row.completed_at is None or row.hidden_rev == 0:
        return None
    head = await place.parts.store.head(scope, says.conversation)
    if head is None:
        return None
    reading = Reading(start=row.end, stop=row.end + 1)
    (last,) = await place.parts.store.messages(scope, says.conversation, head.ref, reading)
    return Recollection(
        why=Why(says.why),
        kind=EntryKind.DIGEST,
        text=_cut(row.text[:TEXT]),
        said_at=last.created_at,
        score=says.score,
        conversation=says.conversation,
        agent=says.agent,
        start=row.start,
        end=row.end,
        digest=row.id,
    )


async def _passage_again(place: Place, scope: Scope, says: Recalled) -> Recollection | None:
    library = place.parts.library
    if library is None or says.document is None or says.passage is None:
        return None
    document = await library.document(scope, says.document, every_agent=True)
    passages = await library.passages(scope, says.document, every_agent=True)
    if document is None or says.passage >= len(passages):
        return None
    archived = document.archived
    return Recollection(
        why=Why(says.why),
        kind=EntryKind.PASSAGE,
        text=_cut(passages[says.passage].text[:TEXT]),
        said_at=document.said_at,
        score=says.score,
        conversation=None if archived is None else archived.conversation,
        agent=says.agent,
        start=None if archived is None else archived.start,
        end=None if archived is None else archived.end,
        document=document.id,
        passage=says.passage,
        title=document.title,
    )
