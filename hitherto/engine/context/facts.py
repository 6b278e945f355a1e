"""The facts that a context shows: chosen for a question, or read again for a manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hitherto.core.context.blocks import FactLine, block, fitting, own_facts_first
from hitherto.core.context.manifest import FactsShown, ShownFact
from hitherto.core.context.request import ContextRequest
from hitherto.core.facts.queries import KnownFacts
from hitherto.core.facts.relevance import most_relevant_first, relevance_of
from hitherto.core.recall.terms import question_terms
from hitherto.core.recall.vectors import Vector
from hitherto.engine.handle import Handle
from hitherto.errors import NotReproducible


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFacts:
    """Facts as a context shows them: the texts at the end of the instructions (`profile`) and in front of the incoming
    message (`ahead`), their entry in the manifest, and the tokens (`room`) set aside for those that are chosen for that
    message."""

    profile: str | None
    ahead: str | None
    says: FactsShown
    room: int = 0

    def known_to(self, request: ContextRequest) -> ContextRequest:
        """The request with these facts."""
        return request.knowing(self.profile, self.ahead, room=self.room or request.facts_room)


@dataclass(frozen=True, slots=True)
class FactsQuestion:
    """The question that facts are chosen for where not all of them fit: its text, and its vector in the space of their
    codes."""

    text: str
    vector: Vector | None


def all_of(handle: Handle, known: KnownFacts, request: ContextRequest, room: int) -> ShownFacts | None:
    """All facts; None if they do not fit. Those that were learned since the others were taken stand in front of the
    incoming message, so that the instructions stay as they are."""
    if int(known.tokens.sum()) > room:  # which spares counting what cannot fit
        return None
    place = handle.services.settings.facts_place
    lines = [_line(known, at) for at in range(len(known.ids))]
    taken = len(lines) if place != "auto" else sum(one.fact <= known.taken for one in lines)
    ahead = place == "incoming"
    shown, newer = (lines[taken:], ()) if not taken else (lines[:taken], lines[taken:])
    found = _shown(known, shown, newer, ahead=ahead or not taken)
    fits = found.known_to(request).facts_tokens(injection=request.injected is not None) <= room
    return replace(found, room=room if ahead else 0) if fits else None


def chosen_facts(
    handle: Handle, known: KnownFacts, request: ContextRequest, room: int, question: FactsQuestion
) -> ShownFacts | None:
    """The facts that bear most on the question, as many as fit; None where none fits. Facts that others share take at
    most half of the room, as long as the user's own facts fill the rest."""
    ahead = handle.services.settings.facts_place != "system"
    relevance = relevance_of(known, question_terms(question.text), question.vector)
    order = own_facts_first(most_relevant_first(known.ids, relevance), known.own, known.tokens, room=room)

    def cost(lines: Sequence[FactLine]) -> int:
        found = _shown(known, lines, (), ahead=ahead)
        return found.known_to(request).facts_tokens(injection=request.injected is not None)

    lines = fitting(order.tolist(), lambda at: _line(known, at), known.tokens, room=room, cost=cost)
    return replace(_shown(known, lines, (), ahead=ahead), room=room if ahead else 0) if lines else None


def none_of(known: KnownFacts) -> FactsShown:
    """The manifest's entry where not one fact fits."""
    return FactsShown(subject=known.subject.id, name=known.subject.name, place="system", known=len(known.ids), shown=[])


def _shown(known: KnownFacts, lines: Sequence[FactLine], newer: Sequence[FactLine], *, ahead: bool) -> ShownFacts:
    says = FactsShown(
        subject=known.subject.id,
        name=known.subject.name,
        place="incoming" if ahead else "system",
        known=len(known.ids),
        shown=_entries(lines),
        newer=_entries(newer),
    )
    return _written(says, lines, newer)


def _entries(lines: Sequence[FactLine]) -> list[ShownFact]:
    return [ShownFact(fact=one.fact, version=one.version, shared=one.shared) for one in lines]


def _written(says: FactsShown, lines: Sequence[FactLine], newer: Sequence[FactLine]) -> ShownFacts:
    first = block(says.name, lines)
    if says.place == "incoming":
        return ShownFacts(profile=None, ahead=first, says=says)
    return ShownFacts(profile=first, ahead=block(says.name, newer) if newer else None, says=says)


def _line(known: KnownFacts, at: int) -> FactLine:
    return FactLine(
        fact=int(known.ids[at]),
        version=int(known.versions[at]),
        category=known.categories[at],
        content=known.contents[at],
        shared=bool(known.shared[at]),
    )


async def again(handle: Handle, says: FactsShown | None) -> ShownFacts | None:
    """The facts that a manifest says were shown; None if none were. Raises NotReproducible for a fact that was deleted
    or is no longer shared."""
    if says is None or not says.shown:
        return None
    asked = [*says.shown, *says.newer]
    found = await handle.services.store.facts.versions(handle.scope, [(one.fact, one.version) for one in asked])
    lines: list[FactLine] = []
    for one, fact in zip(asked, found, strict=False):
        if fact is None:
            raise NotReproducible(
                f"fact {one.fact}, which this context showed in version {one.version}, was deleted or is shared no more"
            )
        lines.append(
            FactLine(
                fact=one.fact, version=one.version, category=fact.category, content=fact.content, shared=one.shared
            )
        )
    first = len(says.shown)
    return _written(says, lines[:first], lines[first:])
