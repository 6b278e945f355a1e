"""The facts that a context shows: chosen for a question, or read again for a manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    """Facts as a context shows them: their text, their entry in the manifest, and the tokens (`room`) set aside for
    them where they stand ahead of the incoming message (0 elsewhere)."""

    text: str
    says: FactsShown
    room: int = 0

    def known_to(self, request: ContextRequest) -> ContextRequest:
        """The request with these facts."""
        return request.knowing(self.text, ahead=self.says.place == "incoming", room=self.room or request.facts_room)


@dataclass(frozen=True, slots=True)
class FactsQuestion:
    """The question that facts are chosen for where not all of them fit: its text, and its vector in the space of their
    codes."""

    text: str
    vector: Vector | None


def all_of(handle: Handle, known: KnownFacts, request: ContextRequest, room: int) -> ShownFacts | None:
    """All facts; None if they do not fit."""
    if not len(known.ids):
        return None
    ahead = handle.services.settings.facts_place == "incoming"
    every: list[int] = list(range(len(known.ids)))
    if int(known.tokens.sum()) > room:  # which spares counting what cannot fit
        return None
    lines = [_line(known, at) for at in every]
    if _cost(request, known.subject.name, ahead=ahead)(lines) > room:
        return None
    return _shown(known, lines, ahead=ahead, room=room)


def chosen_facts(
    handle: Handle, known: KnownFacts, request: ContextRequest, room: int, question: FactsQuestion
) -> ShownFacts | None:
    """The facts that bear most on the question, as many as fit; None where none fits. Facts that others share take at
    most half of the room, as long as the user's own facts fill the rest."""
    ahead = handle.services.settings.facts_place != "system"
    relevance = relevance_of(known, question_terms(question.text), question.vector)
    order = own_facts_first(most_relevant_first(known.ids, relevance), known.own, known.tokens, room=room)
    cost = _cost(request, known.subject.name, ahead=ahead)
    lines = fitting(order.tolist(), lambda at: _line(known, at), known.tokens, room=room, cost=cost)
    return _shown(known, lines, ahead=ahead, room=room) if lines else None


def none_of(known: KnownFacts) -> FactsShown:
    """The manifest's entry where not one fact fits."""
    return FactsShown(subject=known.subject.id, name=known.subject.name, place="system", known=len(known.ids), shown=[])


def _shown(known: KnownFacts, lines: Sequence[FactLine], *, ahead: bool, room: int) -> ShownFacts:
    says = FactsShown(
        subject=known.subject.id,
        name=known.subject.name,
        place="incoming" if ahead else "system",
        known=len(known.ids),
        shown=[ShownFact(fact=one.fact, version=one.version, shared=one.shared) for one in lines],
    )
    return ShownFacts(text=block(says.name, lines), says=says, room=room if ahead else 0)


def _line(known: KnownFacts, at: int) -> FactLine:
    return FactLine(
        fact=int(known.ids[at]),
        version=int(known.versions[at]),
        category=known.categories[at],
        content=known.contents[at],
        shared=bool(known.shared[at]),
    )


def _cost(request: ContextRequest, name: str, *, ahead: bool) -> Callable[[Sequence[FactLine]], int]:
    """A function that counts the tokens that lines take in the request as it is sent."""

    def cost(lines: Sequence[FactLine]) -> int:
        return request.knowing(block(name, lines), ahead=ahead).facts_tokens(injection=request.injected is not None)

    return cost


async def again(handle: Handle, says: FactsShown | None) -> ShownFacts | None:
    """The facts that a manifest says were shown; None if none were. Raises NotReproducible for a fact that was deleted
    or is no longer shared."""
    if says is None or not says.shown:
        return None
    asked = [(one.fact, one.version) for one in says.shown]
    found = await handle.services.store.facts.versions(handle.scope, asked)
    lines: list[FactLine] = []
    for one, fact in zip(says.shown, found, strict=False):
        if fact is None:
            raise NotReproducible(
                f"fact {one.fact}, which this context showed in version {one.version}, was deleted or is shared no more"
            )
        lines.append(
            FactLine(
                fact=one.fact, version=one.version, category=fact.category, content=fact.content, shared=one.shared
            )
        )
    return ShownFacts(text=block(says.name, lines), says=says)
