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


def known_facts_to_show(
    columns: FactColumns,
    texts: Sequence[str],
    vectors: NDArray[np.float32] | None,
    *,
    own: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> list[int]:
    """The places of the `own` facts to show with messages of these texts, at most MOST_SHOWN: first the newest that are
    `single` (at most `_MOST_SINGLE`), as what replaces them may have nothing in common with them; then those that bear
    most on any one of the messages (`core.facts.relevance`). `vectors` are those of the texts, one a row; without them
    words decide."""
    relevance = np.zeros(len(columns.ids), np.float32)
    for at, text in enumerate(texts):
        np.maximum(relevance, relevance_of(columns, text, None if vectors is None else vectors[at]), out=relevance)
    order = most_relevant_first(columns.ids, relevance)
    held = np.flatnonzero(own & single)[-_MOST_SINGLE:]
    return list(dict.fromkeys([*held.tolist(), *order[own[order]].tolist()]))[:MOST_SHOWN]
