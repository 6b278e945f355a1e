"""`hitherto costs` as its users meet it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.core.scope import Scope
from hitherto.providers.scripted import items
from hitherto.store.store import Store
from tests.acceptance.cli.commands import SUPPORT, Cli, Ran, bare
from tests.providers.models.endpoint import Answer, Endpoint, said
from tests.store.samples import user, write

NOW = datetime.now(UTC)
"""Of the whole run: should midnight fall into it, what is asked for has a last day of its own."""
TODAY, DAY = NOW.date(), timedelta(days=1)
UP_TO = ("--until", TODAY.isoformat())

MINE = Scope(tenant="acme", user="u-1", agent="a")
THEIRS = Scope(tenant="other", user="u-2", agent="a")
CALL = ModelCall(
    purpose=Purpose.DIGEST,
    model="gpt-4.1-mini",
    latency_ms=1_500,
    tokens_in=12_345,
    tokens_cached=1_024,
    tokens_out=678,
    cost=0.25,
)
FAILED = ModelCall(purpose=Purpose.CONDENSE, model="gpt-4.1-mini", latency_ms=500, cause=FailureCause.BUSY)
LOCAL = replace(CALL, model="qwen3:8b", tokens_cached=None, cost=None)


def entries(calls: Iterable[ModelCall]) -> list[ModelCall]:
    """Calls like these, each an entry of its own."""
    return [replace(call) for call in calls]


PRICED = {
    "calls": 1,
    "failed": 0,
    "unpriced": 0,
    "tokens_in": 12_345,
    "tokens_cached": 1_024,
    "tokens_out": 678,
    "cost_usd": 0.25,
    "latency_ms": 1_500,
}


@pytest.fixture
async def ledger(database: str) -> AsyncIterator[Store]:
    store = Store(database)
    await store.open()
    for scope in (MINE, THEIRS):  # a call names only those of whom something is kept
        await write(store, "c", user(), scope=scope)
    yield store
    await store.aclose()


def costs(database: str, *words: str, **given: str) -> Ran:
    return bare("costs", "--database", database, *words, **given)


def shown(ran: Ran) -> str:
    """What it printed, with nothing but results, within 80 columns."""
    assert (ran.code, ran.err) == (0, ""), ran
    assert max(map(len, ran.out.splitlines())) <= 80
    return ran.out


def groups(ran: Ran) -> list[str]:
    assert (ran.code, ran.err) == (0, ""), ran
    return [one["group"] for one in ran.json["groups"]]


def test_an_empty_ledger_says_so(database: str) -> None:
    since = TODAY - 29 * DAY
    assert shown(costs(database, *UP_TO)) == f"The ledger has no model calls from {since} to {TODAY} (UTC).\n"
    said = shown(costs(database, "--tenant", "nobody", "--since", "2026-01-31", "--by", "model"))
    assert said == "The ledger has no model calls of the tenant nobody since 2026-01-31 (UTC).\n"
    nothing = dict.fromkeys(PRICED, 0)
    assert costs(database, "--json", *UP_TO).json == {
        "by": "day",
        "since": since.isoformat(),
        "until": TODAY.isoformat(),
        "groups": [],
        "total": nothing,
    }


async def test_the_json(database: str, ledger: Store) -> None:
    await ledger.note_calls(MINE, None, entries([CALL, LOCAL]))
    ran = costs(database, "--by", "model", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert (ran.json["by"], ran.json["until"]) == ("model", None)
    assert date.fromisoformat(ran.json["since"]) in (TODAY - 29 * DAY, TODAY - 28 * DAY)
    local = {**PRICED, "unpriced": 1, "tokens_cached": 0, "cost_usd": 0}
    assert ran.json["groups"] == [{"group": "gpt-4.1-mini", **PRICED}, {"group": "qwen3:8b", **local}]
    assert ran.json["total"] == {
        "calls": 2,
        "failed": 0,
        "unpriced": 1,
        "tokens_in": 24_690,
        "tokens_cached": 1_024,
        "tokens_out": 1_356,
        "cost_usd": 0.25,
        "latency_ms": 3_000,
    }


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("tenant", [("other", 2), ("acme", 1)]),
        ("user", [("u-2", 2), ("u-1", 1)]),
        ("purpose", [("digest", 2), ("condense", 1)]),
    ],
)
async def test_groups(database: str, ledger: Store, by: str, expected: list[tuple[str, int]]) -> None:
    """The most expensive first."""
    await ledger.note_calls(MINE, None, entries([FAILED]))
    await ledger.note_calls(THEIRS, None, entries([CALL, CALL]))
    ran = costs(database, "--by", by, "--json")
    assert (ran.code, ran.err, ran.json["by"]) == (0, "", by)
    assert [(one["group"], one["calls"]) for one in ran.json["groups"]] == expected
    assert shown(costs(database, "--by", by)).splitlines()[1].split()[0] == by


async def test_the_table(database: str, ledger: Store) -> None:
    await ledger.note_calls(MINE, None, entries([CALL, CALL]))
    tomorrow = TODAY + DAY  # what is noted now may be noted behind midnight
    ran = shown(costs(database, "--by", "model", "--until", tomorrow.isoformat()))
    assert ran.splitlines()[0].rstrip() == f"Model calls from {tomorrow - 29 * DAY} to {tomorrow} (UTC)"
    assert re.search(r"^model +calls +failed +tokens in +cached +out +cost$", ran, re.MULTILINE)
    assert re.search(r"^gpt-4.1-mini +2 +0 +24,690 +2,048 +1,356 +\$0\.5000$", ran, re.MULTILINE)
    assert re.search(r"^all +2 +0 +24,690 +2,048 +1,356 +\$0\.5000$", ran, re.MULTILINE)
    assert "not known" not in ran


async def test_a_sum_that_leaves_calls_out_says_so(database: str, ledger: Store) -> None:
    await ledger.note_calls(MINE, None, entries([CALL, LOCAL, FAILED]))
    ran = shown(costs(database, "--by", "model"))
    assert re.search(r"^gpt-4.1-mini +2 +1 .* \$0\.2500\+$", ran, re.MULTILINE)
    assert re.search(r"^qwen3:8b +1 +0 .* –$", ran, re.MULTILINE)
    assert re.search(r"^all +3 +1 .* \$0\.2500\+$", ran, re.MULTILINE)
    assert "The cost of 2 of 3 calls is not known" in " ".join(ran.split())
    wide = costs(database, "--by", "model", COLUMNS="120").out
    assert re.search(r"^model +calls +failed +unpriced +seconds each +tokens in ", wide, re.MULTILINE)
    assert re.search(r"^gpt-4.1-mini +2 +1 +1 +1\.0 ", wide, re.MULTILINE)


async def test_large_figures_fit(database: str, ledger: Store) -> None:
    long = "accounts/somebody/models/gpt-4.1-mini-and-a-name-that-goes-on-and-on"
    large = replace(
        CALL, model=long, tokens_in=98_765_432_109, tokens_cached=9_999_999, tokens_out=10**8, cost=98_765.4
    )
    await ledger.note_calls(MINE, None, entries([large] * 3))
    ran = shown(costs(database, "--by", "model"))
    assert re.search(r"296,296\.3 M +30\.0 M +300\.0 M +\$296,296\.20$", ran, re.MULTILINE)
    assert len(ran.strip().splitlines()) == 6, "title, names, a line, the group, an empty one, the sum"


async def test_which_days(database: str, ledger: Store) -> None:
    for days in (31, 30, 29):
        await ledger.note_calls(MINE, None, entries([CALL]))
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
            late = "update hitherto.model_call set created_at = %s where created_at >= %s"
            await connection.execute(late, [NOW - days * DAY, NOW - DAY])
    first, second, third = ((TODAY - days * DAY).isoformat() for days in (31, 30, 29))
    assert groups(costs(database, *UP_TO, "--json")) == [third], "30 days, today included"
    assert groups(costs(database, "--since", second, "--json")) == [third, second]
    assert groups(costs(database, "--until", second, "--json")) == [second, first]
    assert groups(costs(database, "--since", second, "--until", second, "--json")) == [second]
    assert groups(costs(database, "--since", "0001-01-01", "--until", "9999-12-31", "--json")) == [third, second, first]
    assert groups(costs(database, "--until", "0001-01-02", "--json")) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--by", "agent"], "'agent' is not one of"),
        (["--since", "yesterday"], "--since is 'yesterday'; give a day like 2026-11-30"),
        (["--until", "2026-02-30"], "--until is '2026-02-30'"),
        (["--since", "2026-02-02", "--until", "2026-02-01"], "--until 2026-02-01 comes before it"),
        (["--tenant", ""], "--tenant is ''; give a non-empty string"),
        (["all"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(cli: Cli, words: list[str], why: str) -> None:
    assert why in cli("costs", *words).failed(2)


def test_what_a_replay_cost(database: str, tmp_path: Path) -> None:
    """From the endpoint's usage, at the price of the snapshot's model: 9,100 tokens in, 64 of them cached, 17 out."""
    mine = tmp_path / "mine.json"
    model = {"input": 2, "cached_input": 0.5, "output": 8, "window": 1_000_000}
    mine.write_text(json.dumps({"date": "2026-01-31", "models": {"small": model}}))
    answer = json.loads(said(items("Something was decided.")).body)
    answer["usage"]["prompt_tokens"] = 9_100
    with Endpoint(Answer(body=json.dumps(answer))) as endpoint:
        given = {
            "HITHERTO_DATABASE": database,
            "HITHERTO_MODEL": "vendor/small-2026-01-31",
            "HITHERTO_MODEL_BASE_URL": endpoint.url,
            "HITHERTO_PRICES": str(mine),
        }
        ran = bare("replay", SUPPORT, "--tenant", "acme", "--budget", "1500", **given)
        assert ran.code == 0, ran
    (found,) = costs(database, "--by", "model", "--tenant", "acme", "--json").json["groups"]
    calls = found["calls"]
    assert calls == len(endpoint.asked) > 0
    assert (found["group"], found["failed"], found["unpriced"]) == ("vendor/small-2026-01-31", 0, 0)
    tokens = [found[f"tokens_{name}"] for name in ("in", "cached", "out")]
    assert tokens == [9_100 * calls, 64 * calls, 17 * calls]
    assert found["cost_usd"] == pytest.approx(calls * (9_036 * 2 + 64 * 0.5 + 17 * 8) / 1e6, abs=1e-8)
    assert costs(database, "--tenant", "local", "--json").json["groups"] == []
