"""`hitherto replay` of the ten long conversations of LoCoMo, in a database, in memory and with its own PostgreSQL."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitherto.policies import PRESETS
from tests import forked
from tests.providers.models.endpoint import Answer, Body, Endpoint, compacted, refused
from tests.tokens.test_counters import reference_count

BUDGET = 2_000


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    yield folder / "pg"
    shutil.rmtree(folder)


def replayed(home: Path, *words: str | Path, **settings: str) -> list[dict[str, Any]]:
    """The conversations in a replay's JSON."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HITHERTO_")}
    given = {"HITHERTO_DATA_DIR": str(home), **{f"HITHERTO_{name}": value for name, value in settings.items()}}
    done = forked.run("replay", *map(str, words), "--budget", str(BUDGET), "--json", environment={**kept, **given})
    assert (done.code, done.err) == (0, b"")
    found = json.loads(done.out)
    assert set(found) == {"conversations", "repeated", "seconds"}
    parts = [(one["repeated"], one["context_tokens"]) for one in found["conversations"]]
    whole = sum(share * tokens for share, tokens in parts) / sum(tokens for _, tokens in parts)
    assert found["repeated"] == pytest.approx(whole, abs=1e-5)
    return found["conversations"]


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


@pytest.mark.parametrize(
    ("policy", "number"),
    [(name, number) for number, name in enumerate(PRESETS) if name not in ("native", "sliding_window")],
)
def test_every_preset(locomo: Path, home: Path, database: str, policy: str, number: int) -> None:
    """Each with another conversation. No round over budget, no gap, no overlap; and most of a request repeats the one
    before. For the sliding window, which makes a new digest almost every round, see below."""
    name = json.loads(locomo.read_bytes())[number]["sample_id"]
    (one,) = replayed(home, locomo, "--policy", policy, "--database", database, "--conversation", name)
    assert one["id"] == name
    check(one)
    # What is recalled is chosen for each request anew, and has its share of it.
    assert one["repeated"] >= {"chunks": 0.5, "balanced": 0.45}.get(policy, 0.85)


def test_native_compaction(locomo: Path, home: Path, database: str) -> None:
    """The same with an endpoint that compacts, over HTTP: it leaves the newest user message and an opaque item."""

    def compacts(body: Body) -> Answer:
        items = body["input"]
        if not isinstance(items, list):
            return refused(400, "input is neither a text nor a list", param="input")
        newest = next(item for item in reversed(items) if item.get("role") == "user")
        return compacted(newest, {"type": "compaction", "encrypted_content": f"seal of {len(items)} items"})

    with Endpoint(compacts, path="/v1/responses/compact") as endpoint:
        settings = {"COMPACT_MODEL": "gpt-5.1", "COMPACT_BASE_URL": endpoint.url, "WINDOW": "1500"}
        conversations = replayed(
            home, locomo, "--policy", "native", "--conversation", "conv-26", DATABASE=database, **settings
        )
    (one,) = conversations
    check(one)
    assert one["repeated"] >= 0.85
    assert {digest["action"] for digest in one["digests"]} == {"compact"}
    assert len(one["digests"]) == len(endpoint.asked) - 1 > 5  # one asked whether there is such a call
    assert all(len(asked["input"]) < 200 for asked in endpoint.asked[1:])  # each builds on the one before


def test_a_file_of_several(locomo: Path, home: Path, tmp_path: Path) -> None:
    """Three conversations in one run, under the policy that makes most digests."""
    samples = json.loads(locomo.read_bytes())[:3]
    (tmp_path / "three.json").write_text(json.dumps(samples))
    conversations = replayed(home, tmp_path / "three.json", "--policy", "sliding-window", "--database", "memory:")
    assert [one["id"] for one in conversations] == [one["sample_id"] for one in samples]
    assert sum(one["messages"] for one in conversations) == 1_451
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

    dialogue = next(one["conversation"] for one in json.loads(locomo.read_bytes()) if one["sample_id"] == "conv-30")
    turns = [turn for number in range(1, 100) for turn in dialogue.get(f"session_{number}", [])]
    rounds: list[tuple[int, int]] = []
    history = 3  # OpenAI's rule: 3 for the request, and 3 a message beside the tokens of its role and its content
    for seq, turn in enumerate(turns):
        role = "user" if turn["speaker"] == dialogue["speaker_a"] else "assistant"
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
