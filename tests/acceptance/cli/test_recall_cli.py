"""`hitherto recall` as its users meet it: a process of its own each time, on a real PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import hitherto
from hitherto import Scope, assistant, user
from hitherto.store.store import Store
from tests.acceptance.cli.commands import UNSAFE, Cli, Home, Ran

SCOPE = Scope(tenant="local", user="me", agent="cli")
HOSTILE = "The \x1b[31mflamingo\x07 is \u202egnorw\u202c\nand [bold]it[/bold] has :smile: \x9b2J a second line"


@pytest.fixture(scope="module")
async def cli(home: Home) -> Cli:
    """On messages that no worker has indexed: those of two agents, of another user and another tenant."""
    async with hitherto.open(home.url, worker=False) as memory:
        for scope, conversation, texts in (
            (SCOPE, "trip", ["We fly to Lisbon on Friday.", "The hotel is called Aurora.", "I packed the umbrella."]),
            (SCOPE, "work", ["The deployment failed again.", HOSTILE, "An umbrella fund was discussed."]),
            (Scope(tenant="local", user="me", agent="other"), "trip", ["My other umbrella is green."]),
            (Scope(tenant="local", user="eve", agent="cli"), "trip", ["umbrella umbrella umbrella, said Eve"]),
            (Scope(tenant="acme", user="me", agent="cli"), "trip", ["umbrella umbrella, said Acme"]),
        ):
            chat = memory.conversation(conversation, scope=scope)
            for at, text in enumerate(texts):
                await chat.append(assistant(text) if at % 2 else user(text))
        await memory.conversation("names", scope=SCOPE).append(
            {"role": "user", "name": "Zoë", "content": "Pelicans are my favorite."}
        )
        searched = [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"title": "Walrus"}]},
        ]
        await memory.conversation("search", scope=SCOPE).append({"role": "assistant", "content": searched})
    return Cli(home.directory)


def hits(ran: Ran) -> list[dict[str, Any]]:
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.json["hits"]


def places(ran: Ran) -> list[tuple[str, str, int]]:
    return [(one["agent"], one["conversation"], one["start"]) for one in hits(ran)]


def test_what_a_tool_gave_in_a_message_is_the_tools(cli: Cli) -> None:
    shown = cli("recall", "walrus", COLUMNS="200").out
    assert 'assistant: [calls web_search({"query":"x"})] tool "web_search": Walrus' in shown, shown


def test_what_no_worker_has_indexed_is_found(cli: Cli, home: Home) -> None:
    ran = cli("recall", "Where is the umbrella?", "--json")
    assert {place[1:] for place in places(ran)} >= {("trip", 2), ("work", 2)}
    first = ran.json["hits"][0]
    assert "umbrella" in first["text"]
    assert 0 < first["score"] <= 1
    assert set(first["scores"]) >= {"lexical", "semantic", "fused"}
    assert first["scores"]["semantic"] is not None, "it was embedded, too, to be compared"
    with psycopg.connect(home.url) as connection:
        row = connection.execute("select count(*) from hitherto.search_entry where tenant = 'local'").fetchone()
    assert row == (0,), "what only shows something writes nothing"


async def test_where_very_much_waits_it_is_indexed_first(cli: Cli, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a process that died has a claim on the index, the newest is searched, and it is said that it is not all."""
    async with hitherto.open(home.url, worker=False) as memory:
        chat = memory.conversation("imported", scope=Scope(tenant="busy", user="me", agent="cli"))
        await chat.append(user("The heron stands by the pond."), *(user(f"Note {number}.") for number in range(600)))
    store = Store(home.url)
    await store.open()
    claim = await store.index.take(space=None, lease=timedelta(hours=1), limit=1, tenant="busy")
    assert claim is not None
    asked = ("recall", "Where does the heron stand?", "--tenant", "busy")
    monkeypatch.setattr("hitherto.cli.recall._INDEX_TIMEOUT", 0.5)
    ran = cli(*asked)
    assert ran.code == 0
    assert "not all is indexed yet, and only the newest of the rest was searched" in " ".join(ran.err.split())
    assert "heron" not in ran.out
    assert cli(*asked, "--json").json["missing"] == ["index"]
    await store.index.release(claim)
    await store.aclose()
    monkeypatch.undo()
    assert "index" in cli(*asked, "--json", HITHERTO_READ_ONLY="true").json["missing"]
    first, *_ = hits(cli(*asked, "--json"))
    assert first["start"] == 0


def test_the_json_says_what_was_asked_of_whom(cli: Cli) -> None:
    ran = cli("recall", "Where is the umbrella?", "--json")
    found = ran.json
    assert set(found) == {"question", "scope", "hits", "missing", "space", "searched"}
    assert found["question"] == "Where is the umbrella?"
    assert found["scope"] == {"tenant": "local", "user": "me", "agent": "cli"}
    assert found["searched"] == 8
    assert found["missing"] == []
    assert found["space"].startswith("wordllama")
    said = cli("recall", "umbrella", "--conversation", "nowhere").failed(1)
    assert "no conversation 'nowhere' in scope local/me/cli" in said


def test_people_get_a_table(cli: Cli) -> None:
    ran = cli("recall", "umbrella?", "--all-agents")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].split() == ["score", "said", "(UTC)", "where", "agent", "text"]
    rows = [line.split() for line in lines[2:]]
    assert [row[0] for row in rows] == [str(number) for number in range(1, len(rows) + 1)]
    today = {f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}" for days in (0, 1)}
    assert all(0 <= float(row[1]) <= 1 and row[2] in today for row in rows)
    assert {"trip:2", "work:2", "trip:0"} <= {row[3] for row in rows}
    assert max(map(len, lines)) <= 80


def test_what_a_text_would_do_to_a_terminal(cli: Cli) -> None:
    """One row, nothing of it read as a color, an order or markup; and the JSON has it as it is."""
    for columns in ("60", "200"):
        ran = cli("recall", "flamingo", "--min-score", "0", "--limit", "1", COLUMNS=columns)
        assert len(ran.out.splitlines()) == 3
        assert not UNSAFE.search(ran.out)
    assert (
        "[bold]it[/bold] has :smile:"
        in cli("recall", "flamingo", "--min-score", "0", "--limit", "1", COLUMNS="200").out
    )
    (one,) = hits(cli("recall", "flamingo", "--min-score", "0", "--limit", "1", "--json"))
    assert one["text"] == HOSTILE


def test_when_it_was_said(cli: Cli) -> None:
    now = datetime.now(UTC)
    today, tomorrow, yesterday = (f"{now + timedelta(days=days):%Y-%m-%d}" for days in (0, 1, -1))
    every = places(cli("recall", "umbrella", "--json"))
    # A test may run over midnight.
    assert places(cli("recall", "umbrella", "--json", "--after", yesterday, "--before", tomorrow)) == every
    assert places(cli("recall", "umbrella", "--json", "--before", f"{now + timedelta(days=-2):%Y-%m-%d}")) == []
    assert places(cli("recall", "umbrella", "--json", "--after", tomorrow + "T23:59:59+00:00")) == []
    # The same moment in another zone.
    hour = f"{now - timedelta(hours=1):%Y-%m-%dT%H:%M}"
    there = (now - timedelta(hours=1)).astimezone(tz=None).isoformat(timespec="minutes")
    for since in (hour, there):
        assert places(cli("recall", "umbrella", "--json", "--after", since)) == every
        assert places(cli("recall", "umbrella", "--json", "--before", since)) == []
    assert "comes before it" in cli("recall", "x", "--after", tomorrow, "--before", today).failed(2)


async def test_days_are_those_of_the_users_zone(cli: Cli, home: Home) -> None:
    """Said on 9 July there, on 8 July in UTC."""
    async with hitherto.open(home.url, worker=False) as memory:
        await memory.configure_user(tenant="local", user="kai", time_zone="Pacific/Kiritimati")
        chat = memory.conversation("c", scope=Scope(tenant="local", user="kai", agent="cli"))
        await chat.append(user("The canoe leaks.", at=datetime(2026, 7, 8, 20, tzinfo=UTC)))
    asked = ("recall", "What did I say yesterday?", "--user", "kai", "--at")
    assert [one["scores"]["day"] > 0 for one in hits(cli(*asked, "2026-07-10", "--json"))] == [True]
    assert [one["scores"]["day"] > 0 for one in hits(cli(*asked, "2026-07-09T12:00+14:00", "--json"))] != [True]
    lines = cli(*asked, "2026-07-10").out.splitlines()
    assert ("said (+1400)" in lines[0], lines[2].split()[2]) == (True, "2026-07-09")
    log = cli("log", "c", "--user", "kai", COLUMNS="160").out
    assert "said (+1400)" in log, log
    assert "2026-07-09 10:00" in log, log


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("q", "--limit", "0"),
        ("q", "--limit", "1001"),
        ("q", "--min-score", "1.5"),
        ("q", "--min-score", "-0.1"),
        ("q", "--kind", "rumour"),
        ("q", "--after", "soon"),
        ("q", "--before", "2026-02-30"),
        ("q", "--user", ""),
        ("q", "--conversation", ""),
        ("q", "more"),
    ],
)
def test_wrong_usage(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("recall", *words).failed(2)


def test_an_embedder_that_is_down_is_told(cli: Cli) -> None:
    """What was said is found by its words."""
    settings = {
        "HITHERTO_EMBEDDER": "small",
        "HITHERTO_EMBEDDER_BASE_URL": "http://127.0.0.1:9/v1",
        "HITHERTO_EMBEDDER_KEY": "k",
        "HITHERTO_EMBEDDER_DIMENSIONS": "64",
        "HITHERTO_MODEL_MAX_ATTEMPTS": "1",
    }
    ran = cli("recall", "umbrella", **settings)
    assert ran.code == 0
    assert "trip:2" in ran.out
    assert "hitherto: warning: " in ran.err
    found = cli("recall", "umbrella", "--json", **settings)
    assert found.code == 0
    assert found.json["hits"] != []
    assert cli("recall", "umbrella", "--json", HITHERTO_EMBEDDER="none").json["space"] is None
