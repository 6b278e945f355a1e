"""The presets' output is what was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitherto.policies import PRESETS
from tests.databases import OpenStore
from tests.recorded.internals import on
from tests.recorded.recording import differences, recorded, write_full
from tests.recorded.run import CASES, POLICIES, run_case

SHOWN = 60
"""The most lines of differences in a failure."""


@pytest.mark.parametrize("case", CASES)
async def test_output_is_as_recorded(case: str, store: OpenStore, tmp_path: Path) -> None:
    async with on(store) as backend:
        pieces = await run_case(case, backend)
    found = list(differences(case, pieces))
    if found:
        write_full(tmp_path, case, pieces)
        more = [f"… and {len(found) - SHOWN} lines more"] if len(found) > SHOWN else []
        pytest.fail("\n".join([*found[:SHOWN], *more, _advice(case, tmp_path)]), pytrace=False)


def _advice(case: str, folder: Path) -> str:
    return (
        f"The output of {case} is not as recorded; it is in {folder}. To see what it was, run "
        "`python -m tests.recorded --full FOLDER` in a checkout of the version before and compare the two with "
        "`diff -r`. If the change is meant, run `python -m tests.recorded --write` and say in the commit what changed."
    )


def test_every_case_is_recorded() -> None:
    assert recorded() == set(CASES)


def test_every_preset_is_recorded() -> None:
    assert set(PRESETS) <= set(POLICIES)
