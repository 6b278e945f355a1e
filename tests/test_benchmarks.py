"""The benchmarks that fill tables by statements of their own still fit the schema."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WITH_STATEMENTS_OF_THEIR_OWN = ["scale", "recall", "known"]


def test_they_run() -> None:
    names = [word for name in WITH_STATEMENTS_OF_THEIR_OWN for word in ("--only", name)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--json", *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert {figure["benchmark"] for figure in figures} == set(WITH_STATEMENTS_OF_THEIR_OWN)
