"""The presets' output is what was recorded, and the same on both stores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hitherto.policies import PRESETS
from tests.recorded.internals import in_memory, on_postgres
from tests.recorded.recording import IN_FULL, Pieces, differences, recorded, text_of, write_full
from tests.recorded.run import CASES, POLICIES, run_case

SHOWN = 60
"""The most lines of differences in a failure."""

ON_POSTGRES = {
    "plain/sliding_window": "openai.chat",
    "agent/redact_calls": "anthropic",
    "agent/native": "openai.responses",
    "mixed/rolling": "openai.responses",
    "mixed/token_threshold_archive": "openai.chat",
    "two/chunks": "anthropic",
    "two/summarize": "openai.chat",
}
"""Every history and every kind of digest. One wire format each: stores know nothing of formats."""

_TIMES = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z|\+00:00)?)?")
_REQUEST_HASH = re.compile(r'"sha256": "[0-9a-f]{64}"')
"""Hashes of requests, which may contain times."""


@pytest.mark.parametrize("case", CASES)
async def test_output_is_as_recorded(case: str, tmp_path: Path) -> None:
    pieces = await run_case(case, in_memory())
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
    assert {name.split("/")[1] for name in IN_FULL} == set(POLICIES)


def test_every_preset_is_recorded() -> None:
    assert set(PRESETS) <= set(POLICIES)


@pytest.mark.parametrize(("case", "wire"), ON_POSTGRES.items())
async def test_postgres_gives_the_same(case: str, wire: str, database: str, tmp_path: Path) -> None:
    """But for times: the server has its own clock."""
    expected = await run_case(case, in_memory(), wires=[wire])
    async with on_postgres(database) as backend:
        pieces = await run_case(case, backend, wires=[wire])
    differ = [name for name in {**expected, **pieces} if _without_times(expected, name) != _without_times(pieces, name)]
    if differ:
        write_full(tmp_path / "in_memory", case, expected)
        write_full(tmp_path / "postgres", case, pieces)
        pytest.fail(f"{len(differ)} pieces differ ({', '.join(differ[:5])}); see diff -r in {tmp_path}", pytrace=False)


def _without_times(pieces: Pieces, name: str) -> str:
    return _REQUEST_HASH.sub("", _TIMES.sub("TIME", text_of(pieces.get(name))))
