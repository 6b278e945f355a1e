"""Which of the known facts a model is shown when it extracts new ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hitherto.core.facts.fact import KnownFact
from hitherto.core.recall.terms import analyzed

MOST_SHOWN = 30
"""The most known facts that are shown to a model."""

_ALWAYS_SHOWN = 10
"""So many are shown even if they share no word with the messages."""


def known_facts_to_show(
    known: Sequence[KnownFact], texts: Sequence[str], *, single: Collection[str] = ()
) -> tuple[KnownFact, ...]:
    """The known facts to show with messages of these texts, at most MOST_SHOWN: first the newest of `single`
    categories (at most `_ALWAYS_SHOWN`), then those that share words with the texts, by how rare the words are among
    the facts, then others up to `_ALWAYS_SHOWN`."""
    said = {term for text in texts for term in analyzed(text).hashes.tolist()}
    of_fact = [set(analyzed(one.content).hashes.tolist()) for one in known]
    having: dict[int, int] = {}
    for terms in of_fact:
        for term in terms & said:
            having[term] = having.get(term, 0) + 1
    weights = {at: sum(1.0 / having[term] for term in terms & said) for at, terms in enumerate(of_fact)}
    held = [at for at, one in enumerate(known) if one.category in single][-_ALWAYS_SHOWN:]
    ranked = sorted(weights, key=lambda at: (weights[at], at), reverse=True)
    chosen = dict.fromkeys([*held, *(at for at in ranked if weights[at] > 0), *ranked[:_ALWAYS_SHOWN]])
    return tuple(known[at] for at in list(chosen)[:MOST_SHOWN])
