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
from tests import called
from tests.lengths import at_length, lasting
from tests.providers.models.endpoint import Answer, Body, Endpoint, compacted, refused

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
    done = called.call("replay", *map(str, words), "--budget", str(BUDGET), "--json", environment={**kept, **given})
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
    requests = conversation["per_request"]
    assert conversation["requests"] == len(requests)
    for name in ("full_tokens", "context_tokens"):
        assert conversation[name] == sum(one[name] for one in requests)
    assert conversation["max_context_tokens"] == max(one["context_tokens"] for one in requests)
    assert all(one["context_tokens"] <= BUDGET for one in requests)


@lasting
@pytest.mark.parametrize(
    ("policy", "number"),
    [(name, number) for number, name in enumerate(PRESETS) if name not in ("native", "sliding_window")],
)
def test_every_preset(locomo: Path, home: Path, database: str, policy: str, number: int) -> None:
    """Each with another conversation at length, else with one of the two shortest. No round over budget, no gap, no
    overlap; and most of a request repeats the one before. For the sliding window, which makes a new digest almost every
    round, see below."""
    conversations = json.loads(locomo.read_bytes())
    name = conversations[number if at_length() else number % 2]["sample_id"]
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
