"""`hitherto replay` of the ten long conversations of LoCoMo, with its own PostgreSQL, as anyone would run it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tokens.test_counters import reference_count

BUDGET = 2_000


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    yield folder / "pg"
    shutil.rmtree(folder)


def replayed(home: Path, *words: str | Path) -> list[dict[str, Any]]:
    """The conversations in a replay's JSON."""
    command = [sys.executable, "-m", "hitherto", "replay", *map(str, words), "--budget", str(BUDGET), "--json"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HITHERTO_")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**kept, "HITHERTO_HOME": str(home)}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)) == {"conversations", "seconds"}
    return json.loads(done.stdout)["conversations"]


def check(conversation: dict[str, Any]) -> None:
    """What holds of every replay: nothing over budget, no message without a fate or with two, sums that add up."""
    assert {conversation[name] for name in ("over_budget", "gaps", "overlaps")} == {0}
    assert conversation["max_context_tokens"] <= BUDGET
    rounds = conversation["per_round"]
    assert conversation["rounds"] == len(rounds)
    for name in ("full_tokens", "context_tokens"):
        assert conversation[name] == sum(one[name] for one in rounds)
    assert conversation["max_context_tokens"] == max(one["context_tokens"] for one in rounds)
    assert all(one["context_tokens"] <= BUDGET for one in rounds)


def test_all_ten(locomo: Path, home: Path) -> None:
    conversations = replayed(home, locomo)
    assert [one["id"] for one in conversations] == [one["sample_id"] for one in json.loads(locomo.read_bytes())]
    assert len(conversations) == 10
    assert sum(one["messages"] for one in conversations) == 5_882
    full, context = (sum(one[name] for one in conversations) for name in ("full_tokens", "context_tokens"))
    assert context <= 0.12 * full
    for one in conversations:
        check(one)
        known: dict[int, int] = {}
        for digest in one["digests"]:
            assert digest["status"] == "completed"
            assert digest["start"] <= digest["end"] < one["messages"]
            # Each is built on an earlier one, reaches further, and leaves no message between them undigested.
            if known:
                assert digest["base"] == max(known)
                assert digest["start"] <= known[digest["base"]] + 1
                assert digest["end"] > known[digest["base"]]
            else:
                assert digest["base"] is None
            known[digest["id"]] = digest["end"]
        ends = {None, *known.values()}
        assert all(one["digest_end"] in ends for one in one["per_round"])


def test_one_without_a_policy(locomo: Path, home: Path) -> None:
    """Everything stays verbatim up to the budget; and the tokens of the full history, counted once more."""
    (found,) = replayed(home, locomo, "--policy", "none", "--conversation", "conv-30")
    check(found)
    assert found["digests"] == []
    assert {one["digest_end"] for one in found["per_round"]} == {None}

    talk = next(one["conversation"] for one in json.loads(locomo.read_bytes()) if one["sample_id"] == "conv-30")
    turns = [turn for number in range(1, 100) for turn in talk.get(f"session_{number}", [])]
    rounds: list[tuple[int, int]] = []
    history = 3  # OpenAI's rule: 3 for the request, and 3 a message beside the tokens of its role and its content
    for seq, turn in enumerate(turns):
        role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
        caption = turn.get("blip_caption")
        content = turn["text"] + (f"\n[shares a picture: {caption}]" if caption else "")
        history += 3 + reference_count("o200k_base", role) + reference_count("o200k_base", content)
        if role == "user":
            rounds.append((seq, history))
    assert len(turns) == found["messages"]
    assert [(one["seq"], one["full_tokens"]) for one in found["per_round"]] == rounds
    assert all(
        one["context_tokens"] == one["full_tokens"] for one in found["per_round"] if one["full_tokens"] <= BUDGET
    )
