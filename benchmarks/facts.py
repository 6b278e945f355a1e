"""Whether facts that say the same are known for it: labelled pairs, and LoCoMo's observations."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from benchmarks.ground import Ground
from benchmarks.report import Bar, Figure, Findings
from hitherto.core.repetition import Verdict, compared, statement
from hitherto.embedders.wordllama import Wordllama
from tests.core.fact_pairs import Pair, cosines_of, labelled_pairs
from tests.core.observations import Fed, fed_twice, observations

_LOCOMO = Path(__file__).parent.parent.parent / "shared" / "data" / "locomo" / "locomo10.json"

_PRECISION = Bar(limit=0.98, least=True)
_RECALL = Bar(limit=0.6, least=True)
_HALVES: dict[str, Callable[[Pair], bool]] = {
    "all pairs": lambda _: True,
    "the tuning half": lambda pair: pair.tuning,
    "the held-out half": lambda pair: not pair.tuning,
}


async def run(ground: Ground) -> Findings:
    """Precision and recall of merging on the labelled pairs; what LoCoMo's observations come to when fed twice."""
    findings = Findings()
    embedder = Wordllama()
    pairs = labelled_pairs()
    by_words: list[float | None] = [None] * len(pairs)
    for with_what, cosines in (("", await cosines_of(pairs, embedder)), (", by words alone", by_words)):
        verdicts = _verdicts(pairs, cosines)
        for name, belongs in _HALVES.items():
            barred = name == "all pairs" and not with_what
            of_these = [(pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True) if belongs(pair)]
            findings.figures.extend(_merging(of_these, f"{name}{with_what}", whole=name == "all pairs", barred=barred))
    findings.figures.extend(_cost(pairs, ground.size(50, quick=2)))
    if not _LOCOMO.exists():
        findings.notes.append(
            "LoCoMo's observations were not fed: ../shared/data/locomo/locomo10.json is not beside the project."
        )
        return findings
    sentences = observations(_LOCOMO)
    for with_what, chosen in (("", embedder), (", by words alone", None)):
        fed = await fed_twice(sentences, random=Random(6), embedder=chosen)
        findings.figures.extend(_feeding(fed, len(sentences), with_what))
        findings.notes.extend(
            f"merged, of messages that differ{with_what}: {one.kept.text!r} and {one.merged.text!r}"
            for one in fed.merges
            if one.disjoint
        )
    return findings


def _verdicts(pairs: Sequence[Pair], cosines: Sequence[float | None]) -> list[Verdict]:
    return [
        compared(statement(pair.one), statement(pair.other), cosine=cosine)
        for pair, cosine in zip(pairs, cosines, strict=True)
    ]


def _merging(judged: Sequence[tuple[Pair, Verdict]], what: str, *, whole: bool, barred: bool) -> list[Figure]:
    counts = Counter((pair.label, verdict) for pair, verdict in judged)
    labels = Counter(pair.label for pair, _ in judged)
    right = counts["repetition", Verdict.REPEATS]
    merged = sum(count for (_, verdict), count in counts.items() if verdict is Verdict.REPEATS)
    figures = [
        Figure(what=f"precision of merging, {what} ({len(judged)})", value=right / max(merged, 1), bar=_PRECISION),
        Figure(
            what=f"recall of merging, {what} ({labels['repetition']} repetitions)",
            value=right / labels["repetition"],
            bar=_RECALL if barred else None,
        ),
    ]
    if not whole:
        return figures
    asked = 1 - counts["change", Verdict.DIFFERS] / labels["change"]
    apart = counts["unrelated", Verdict.DIFFERS] / labels["unrelated"]
    return [
        *figures,
        Figure(what=f"changes of which a model is asked, {what} ({labels['change']})", value=asked),
        Figure(what=f"unrelated pairs told apart without one, {what} ({labels['unrelated']})", value=apart),
    ]


def _cost(pairs: Sequence[Pair], repetitions: int) -> list[Figure]:
    texts = [text for pair in pairs for text in (pair.one, pair.other)]
    statements = [statement(text) for text in texts]
    begun = time.perf_counter()
    for text in texts:
        statement(text)
    read = time.perf_counter() - begun
    begun = time.perf_counter()
    for one in statements[:repetitions]:
        for other in statements:
            compared(one, other, cosine=0.8)
    each = (time.perf_counter() - begun) / (repetitions * len(statements))
    return [
        Figure(what="a fact taken apart", value=read / len(texts) * 1e6, unit="µs"),
        Figure(what="two facts compared", value=each * 1e6, unit="µs", bar=Bar(limit=30)),
    ]


def _feeding(fed: Fed, sentences: int, with_what: str) -> list[Figure]:
    disjoint = sum(one.disjoint for one in fed.merges)
    return [
        Figure(what=f"LoCoMo's {sentences:,} observations{with_what}: merged", value=len(fed.merges)),
        Figure(what=f"added by the second pass{with_what}", value=fed.added_again, bar=Bar(limit=0)),
        Figure(
            what=f"merged though their messages differ{with_what}",
            value=100 * disjoint / sentences,
            unit="%",
            bar=Bar(limit=3),
        ),
        Figure(what=f"the same, of all merges{with_what}", value=100 * disjoint / max(len(fed.merges), 1), unit="%"),
        Figure(what=f"pairs to ask a model about, a fact{with_what}", value=fed.unsure / max(fed.kept, 1)),
    ]
