"""Which of the known facts a model is shown when it extracts new ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hitherto.core.facts.fact import KnownFact
from hitherto.core.recall.terms import analyzed

MOST_SHOWN = 30
"""No more known facts than these are shown to a model."""

_ALWAYS_SHOWN = 10
"""As many are shown in any case."""


def known_facts_to_show(
    known: Sequence[KnownFact], texts: Sequence[str], *, single: Collection[str] = ()
) -> tuple[KnownFact, ...]:
    """Those of the known facts that bear most on messages with these texts, the most first: all, where there are few;
    else those of `single` categories, and those that have most of their rarer words in common with them."""
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
