"""What the tests of `hitherto doctor` share: calls of it, and what it said, check by check."""

from __future__ import annotations

import json

from tests.acceptance.cli.commands import Cli, Ran, bare
from tests.providers.models.endpoint import Answer, Endpoint, said

NAMES = [
    *("settings", "database", "schema", "row_security", "queue", "index", "model", "compactor", "embedder"),
    *("reranker", "prices"),
]
STATEMENTS = {
    "add": [{"text": "They meet on Tuesday at nine, in Lisbon.", "sources": [0, 1]}],
    "replace": [],
    "drop": [],
}
STRUCTURED = said(json.dumps(STATEMENTS))
KEY = "sk-very-secret"


class Found:
    """What doctor said, check by check. `ok` is what it says of all."""

    def __init__(self, ran: Ran) -> None:
        assert ran.err == "", ran
        self.code = ran.code
        self.all: list[dict[str, str]] = ran.json["checks"]
        self.ok: bool = ran.json["ok"]
        assert set(ran.json) == {"ok", "checks"}
        assert all(list(one) == ["name", "state", "found", "advice"] for one in self.all)
        assert list(dict.fromkeys(one["name"] for one in self.all)) == NAMES  # whatever is broken, all are there
        assert self.ok is (self.code == 0) is not any(one["state"] == "failed" for one in self.all)

    def __getitem__(self, name: str) -> dict[str, str]:
        (found,) = [one for one in self.all if one["name"] == name]
        return found

    def state(self, name: str) -> str:
        return self[name]["state"]

    def said(self, name: str, state: str) -> str:
        """What was found and what to do, of a check that came out so."""
        found = self[name]
        assert found["state"] == state, found
        return f"{found['found']} | {found['advice']}"

    def others(self, *but: str) -> set[str]:
        """How all others came out."""
        return {one["state"] for one in self.all if one["name"] not in but}


def doctor(run: Cli, *words: str, **given: str) -> Found:
    return Found(run("doctor", *words, "--json", **given))


def without_database(**given: str) -> Found:
    """On Hitherto's own server, before its first start."""
    return doctor(bare, **{"HITHERTO_DATA_DIR": "/nowhere/hitherto", **given})


def in_database(database: str, **given: str) -> Found:
    return doctor(bare, "--database", database, **given)


def embedder_at(endpoint: Endpoint, **given: str) -> dict[str, str]:
    where = {"HITHERTO_EMBEDDER_BASE_URL": endpoint.url, "HITHERTO_EMBEDDER_KEY": KEY}
    return {"HITHERTO_EMBEDDER": "tiny", **where, **given}


def ranked(*places: int) -> Answer:
    """Passages in this order, as a cross-encoder says it."""
    results = [{"index": place, "relevance_score": 1 / at} for at, place in enumerate(places, 1)]
    return Answer(body=json.dumps({"results": results}))


def model_at(endpoint: Endpoint, name: str = "small", **given: str) -> dict[str, str]:
    return {"HITHERTO_MODEL": name, "HITHERTO_MODEL_BASE_URL": endpoint.url, "HITHERTO_MODEL_KEY": KEY, **given}
