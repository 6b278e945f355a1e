"""The SDK's own tests of sessions and of the runner, with our session in the place of its `SQLiteSession`.

They come from the source distribution of the installed release, fetched once from the package index into pytest's
cache, and run in a process of their own on PostgreSQL. Which cannot hold, and why, stands in `sdk_own`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.lengths import at_length, lasting

PLUGIN = Path(__file__).parent / "sdk_own"

OF_SESSIONS = [
    "tests/memory/test_session.py",
    "tests/memory/test_session_limit.py",
    "tests/memory/test_compaction_suffix.py",
    "tests/memory/test_openai_responses_compaction_session.py",
]
"""What sessions promise: these run each time."""

OF_RUNS = [
    "tests/memory/test_compaction_model_visibility.py",
    "tests/sandbox/test_memory.py",
    "tests/test_agent_runner.py",
    "tests/test_agent_runner_streamed.py",
    "tests/test_agent_runner_sync.py",
    "tests/test_hitl_session_scenario.py",
    "tests/test_max_turns.py",
    "tests/test_native_tool_failure_history.py",
    "tests/test_programmatic_tool_calling.py",
    "tests/test_run_impl_resume_paths.py",
    "tests/test_soft_cancel.py",
    "tests/test_tool_batch_failure_history.py",
    "tests/test_tool_failure_boundaries.py",
]
"""What runs do with a session: these run at length."""

LONGEST = 3_000
"""Seconds after which the run is given up; it takes half a minute on a quiet machine."""


@pytest.fixture(scope="module")
def sources(pytestconfig: pytest.Config) -> Path:
    """The unpacked source distribution of the installed release."""
    release = version("openai-agents")
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir(f"openai-agents-{release}")
    unpacked = folder / f"openai_agents-{release}"
    if not (unpacked / OF_SESSIONS[0]).exists():
        archive = _downloaded(release, folder)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return unpacked


def _downloaded(release: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", "openai-agents", "--dest", str(folder), f"openai-agents=={release}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or "nothing said").splitlines()[-1]
        pytest.skip(f"the SDK's own tests were NOT run: the package index gave no source of {release} ({last})")
    return next(folder.glob("*.tar.gz"))


@lasting
async def test_the_sdks_own_tests_pass_with_our_session(
    sources: Path, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    ours = ("HITHERTO_", "OPENAI_", "PYTEST_")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "PYTHONPATH": str(PLUGIN),
        "HITHERTO_SDK_DATABASE": database,
        "HITHERTO_SDK_REPORT": str(report),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "hitherto_in_sdk"]
    command += ["-rf", "--tb=native", *OF_SESSIONS, *(OF_RUNS if at_length() else [])]

    done = await asyncio.to_thread(
        subprocess.run, command, cwd=sources, env=environment, capture_output=True, text=True, timeout=LONGEST
    )

    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    told = json.loads(report.read_text(encoding="utf-8"))
    all_of_them = Counter(told["outcomes"].values())
    with_ours = Counter(told["outcomes"][name] for name in told["used"])
    assert with_ours["passed"] >= (250 if at_length() else 75), f"the substitution reached only {with_ours}"
    with capsys.disabled():
        sys.stdout.write(f"\nthe SDK's own tests: {_told(all_of_them)}; of these on our session: {_told(with_ours)}\n")


def _told(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
