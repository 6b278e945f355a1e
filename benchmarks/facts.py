"""Whether what is merged without a model says the same, and whether a model is shown the known fact that it needs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.report import Bar, Figure, Findings
from hitherto.core.facts.fact import ExtractedFact, KnownFact
from hitherto.core.facts.merge import merged
from tests.core.facts.fact_columns import shares_shown
from tests.core.facts.fact_pairs import Pair, labeled_pairs
from tests.core.policy.observations import disjoint, fed_twice, observations

_LOCOMO = Path(__file__).parent.parent.parent / "shared" / "data" / "locomo" / "locomo10.json"


async def run(ground: Ground) -> Findings:
    """Precision of merging, and what a model is shown, on the labeled pairs; and what LoCoMo's observations come to
    when fed twice."""
    pairs = labeled_pairs()
    together = [pair for pair in pairs if _are_merged(pair)]
    right = sum(pair.label == "repetition" for pair in together)
    repetitions = sum(pair.label == "repetition" for pair in pairs)
    changes = sum(pair.label == "change" for pair in pairs)
    findings = Findings(
        [
            Figure(
                what=f"precision of merging, labeled pairs ({len(pairs)})",
                value=right / max(len(together), 1),
                bar=Bar(limit=0.98, at_least=True),
            ),
            Figure(what=f"merged without a model, of {repetitions} repetitions", value=right),
        ]
    )
    for place, behind, answers in (("beside three long answers", 0, 3), ("behind 20 sentences", 20, 0)):
        by_words, by_meaning = await shares_shown(behind=behind, answers=answers)
        known = f"known fact shown to the model, of {repetitions + changes} repetitions and changes {place}"
        findings.figures.extend(
            [
                Figure(what=f"{known}: by words", value=100 * by_words, unit="%"),
                Figure(what=f"{known}: with vectors", value=100 * by_meaning, unit="%"),
            ]
        )
    if not _LOCOMO.exists():
        findings.notes.append(
            "LoCoMo's observations were not fed: ../shared/data/locomo/locomo10.json is not beside the project."
        )
        return findings
    sentences = observations(_LOCOMO)
    kept, added = fed_twice(sentences)
    findings.figures.extend(
        [
            Figure(what=f"LoCoMo's {len(sentences):,} observations: merged", value=len(sentences) - len(kept)),
            Figure(what="added by the second pass", value=added, bar=Bar(limit=0)),
            Figure(
                what="merged though their messages differ",
                value=100 * sum(map(disjoint, kept)) / len(sentences),
                unit="%",
                bar=Bar(limit=3),
            ),
        ]
    )
    return findings


def _are_merged(pair: Pair) -> bool:
    known = KnownFact(id=1, category=pair.category, content=pair.one, confidence=0.5)
    said = ExtractedFact(category=pair.category, content=pair.other, seqs=(0,), confidence=0.5)
    return bool(merged([known], [said], subject="", extracted=(), single=(), count=len).repeated)
