"""A score is the probability that its hit is evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.calibration import calibration_error, first_hits
from hitherto.cli.bench.questions import load, spread


@pytest.mark.parametrize("whole", [True, False], ids=["large scopes", "small scopes"])
async def test_of_the_first_hits_so_many_are_evidence_as_their_scores_say(locomo: Path, whole: bool) -> None:
    """Half of the questions are asked in somebody else's scope. Of so few, the error is larger than of all
    (docs/recall.md); before scores were probabilities, it was .24 and more."""
    found = await first_hits("LoCoMo", spread(load(locomo)[:3], 120), whole=whole)
    assert len(found.scores) >= 200
    assert calibration_error(found.scores, found.evidence) <= 0.15
