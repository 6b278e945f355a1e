"""Which of the known facts a model is shown when it extracts new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hitherto.arrays import NDArray, np
from hitherto.core.facts.relevance import FactColumns, most_relevant_first, relevance_of
from hitherto.core.recall.terms import question_terms

MOST_SHOWN = 30
"""The most known facts that are shown to a model."""

_MOST_SINGLE = 10
"""So many facts of categories that hold one value are shown whatever the messages say."""

_PIECE = 200
"""Characters of a piece: about as long as what states a fact. The words of a longer text hide each other, and so do the
meanings in its vector."""

_MOST_PIECES = 1_000
"""Where there is more text than makes so many pieces, long texts are cut into longer ones."""

_TERMS = 256
"""Words of a piece that are looked up: enough for all of one, in scripts without spaces too."""

_OF_ASSISTANTS = 0.5
"""What an assistant says counts half as much: a fact is what a user says, but an answer may be a mere "yes"."""


def pieces(users: Sequence[str], assistants: Sequence[str] = ()) -> dict[str, float]:
    """What users and assistants say, in pieces, and how much each of them counts. Pieces overlap by half, so that what
    one of them cuts through is whole in another. What is said again is one piece."""
    step = max(_PIECE // 2, sum(map(len, [*users, *assistants])) // _MOST_PIECES)
    found: dict[str, float] = {}
    for texts, counts in ((assistants, _OF_ASSISTANTS), (users, 1.0)):
        for text in filter(None, texts):
            found.update((text[at : at + 2 * step], counts) for at in range(0, max(len(text) - step, 1), step))
    return found


def known_facts_to_show(
    columns: FactColumns,
    said: Mapping[str, float],
    vectors: NDArray[np.float32] | None,
    *,
    own: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> list[int]:
    """The places of the `own` facts to show, at most MOST_SHOWN, those first that matter most.

    First come the newest that are `single` (at most `_MOST_SINGLE`, the oldest of these first), as what replaces them
    may have nothing in common with them; then those that bear most on any one of the `pieces` that were said
    (`core.facts.relevance`). `vectors` are those of the pieces, one a row, in their order; without them words decide.
    """
    relevance = np.zeros(len(columns.ids), np.float32)
    for at, (piece, counts) in enumerate(said.items()):
        terms = question_terms(piece, most=_TERMS)
        if terms.telling:
            bears = relevance_of(columns, terms, None if vectors is None else vectors[at])
            np.maximum(relevance, np.float32(counts) * bears, out=relevance)
    order = most_relevant_first(columns.ids, relevance)
    held = np.flatnonzero(own & single)[-_MOST_SINGLE:]
    return list(dict.fromkeys([*held.tolist(), *order[own[order]].tolist()]))[:MOST_SHOWN]
