"""Which of the known facts a model is shown when it extracts new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hitherto.core.facts.relevance import FactColumns, most_relevant_first, relevance_of

MOST_SHOWN = 30
"""The most known facts that are shown to a model."""

_MOST_SINGLE = 10
"""So many facts of categories that hold one value are shown whatever the messages say."""

_PIECE = 200
"""Characters of a piece: about as long as what states a fact. The words of a longer text hide each other, and so do the
meanings in its vector."""

_MOST_PIECES = 1_000
"""Beyond these the pieces get longer, so that very much text takes no longer."""


def pieces(texts: Sequence[str]) -> list[str]:
    """The texts in pieces that overlap by half, so that what one of them cuts through is whole in another."""
    total = sum(map(len, texts))
    step = max(_PIECE // 2, total // _MOST_PIECES)
    return [text[at : at + 2 * step] for text in texts if text for at in range(0, max(len(text) - step, 1), step)]


def known_facts_to_show(
    columns: FactColumns,
    said: Sequence[str],
    vectors: NDArray[np.float32] | None,
    *,
    own: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> list[int]:
    """The places of the `own` facts to show, at most MOST_SHOWN, those first that matter most.

    First come the newest that are `single` (at most `_MOST_SINGLE`, the oldest of these first), as what replaces them
    may have nothing in common with them; then those that bear most on any one of the pieces `said`
    (`core.facts.relevance`). `vectors` are those of the pieces, one a row; without them words decide.
    """
    relevance = np.zeros(len(columns.ids), np.float32)
    for at, piece in enumerate(said):
        np.maximum(relevance, relevance_of(columns, piece, None if vectors is None else vectors[at]), out=relevance)
    order = most_relevant_first(columns.ids, relevance)
    held = np.flatnonzero(own & single)[-_MOST_SINGLE:]
    return list(dict.fromkeys([*held.tolist(), *order[own[order]].tolist()]))[:MOST_SHOWN]
