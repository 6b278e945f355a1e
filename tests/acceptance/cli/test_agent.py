"""`hitherto agent --stdio`: commands in, events out, over real HTTP, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

import hitherto
from hitherto import EventKind, Scope, user
from hitherto.other_systems.session_strategies.commands import COMMANDS
from hitherto.other_systems.session_strategies.events import EVENTS, schemas
from hitherto.other_systems.session_strategies.loop import LONGEST
from scripts import write_schemas
from tests import forked
from tests.acceptance.cli.commands import Cli, bare
from tests.patience import PATIENCE
from tests.providers.models.endpoint import Answer, Body, Endpoint, refused, said

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DOCS = Path(__file__).resolve().parents[3] / "docs"
AGENT = json.loads((EXAMPLES / "agent.json").read_text())["agent_id"]
WORDS = "agent", str(EXAMPLES / "agent.json"), "--stdio", "--tools", str(EXAMPLES / "agent_tools.py")


def reply(body: Body) -> Answer:
    """Looks an order up where it is asked for one, fails where it is told to, else says how much it was sent."""
    last = body["messages"][-1]
    if "fail" in str(last["content"]):
        return refused(400, "it was told to fail")
    if last["role"] == "user" and "order" in str(last["content"]):
        function = {"name": "get_order", "arguments": '{"number": "4711"}'}
        return said(None, finish="tool_calls", tool_calls=[{"id": "c1", "type": "function", "function": function}])
    return said(f"Of {len(body['messages'])}.")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(reply) as started:
        yield started


def surroundings(endpoint: Endpoint, database: str) -> dict[str, str]:
    return Cli().surroundings(OPENAI_BASE_URL=endpoint.url, OPENAI_API_KEY="none", HITHERTO_DATABASE=database)


def answered(endpoint: Endpoint, *lines: bytes | dict[str, Any], database: str) -> list[dict[str, Any]]:
    """The events that the lines get. Each is as its schema says."""
    written = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    ended = forked.run(*WORDS, given=written, environment=surroundings(endpoint, database))
    assert (ended.code, ended.err) == (0, b"")
    assert ended.out.isascii()
    for line in ended.out.splitlines():
        TypeAdapter(EVENTS[json.loads(line)["event"]]).validate_json(line)
    return [json.loads(line) for line in ended.out.splitlines()]


def run(message: str, **more: Any) -> dict[str, Any]:
    return {"command": "run", "session_id": "s", "message": message, **more}


def test_a_session(endpoint: Endpoint, database: str) -> None:
    events = answered(endpoint, run("Where is my order?", id=7), run("Thanks."), database=database)
    assert [one["event"] for one in events] == [
        *("run_started", "model_call", "tool_call", "tool_result", "model_call", "message", "run_completed"),
        *("run_started", "model_call", "message", "run_completed"),
    ]
    assert [one["id"] for one in events] == [7] * 7 + [None] * 4
    assert events[3]["payload"] == "a keyboard, sent on Monday"
    assert events[6]["output"] == events[5]["payload"] == "Of 4."
    assert events[10]["output"] == "Of 6.", "it remembers"

    # Another process goes on.
    trimming = {"memoryTrimming": {"max_turns": 3, "keep_last_n_turns": 1}}
    events = answered(
        endpoint,
        {"command": "strategy", "session_id": "s", "memory_strategy": trimming, "memory_injection": True},
        run("Still there?"),
        {"command": "strategy", "session_id": "s"},
        {"command": "sessions"},
        {"command": "history", "session_id": "s"},
        {"command": "clear", "session_id": "s"},
        run("Who am I?"),
        {"command": "strategy", "session_id": "new"},
        {"command": "strategy", "session_id": "s", "memory_strategy": ""},
        database=database,
    )
    assert (events[0]["strategy"], events[0]["memory_injection"]) == ("trim", True)
    by_name = {one["event"]: one for one in events}
    assert by_name["freed"]["payload"]["tokens"] > 0
    (session,) = by_name["sessions"]["sessions"]
    assert (session["session_id"], session["messages"]) == ("s", 6)
    history = by_name["history"]
    assert [one["content"] for one in history["messages"] if one["role"] == "user"] == [
        "Where is my order?",
        "Thanks.",
        "Still there?",
    ]
    assert [one["strategy"] for one in history["runs"]] == ["trim", "token_threshold", "token_threshold"]
    assert by_name["cleared"]["messages"] == 8
    completed = [one for one in events if one["event"] == "run_completed"]
    assert completed[-1]["output"] == "Of 2.", "the instructions and the message"
    assert completed[0]["run"]["freed"] == by_name["freed"]["payload"]["tokens"]
    assert events[-2]["strategy"] == "token_threshold", "another session has the agent's"
    assert events[-1]["strategy"] == "token_threshold", "without its own this one too"

    # A run is replayed.
    first = history["runs"][-1]
    events = answered(endpoint, {"command": "history", "session_id": "s", "run": first["id"]}, database=database)
    assert [one["event"] for one in events][:4] == ["run_started", "model_call", "tool_call", "tool_result"]
    assert events[-1] == {"event": "run_replayed", "run": first, "id": None}
    events = answered(endpoint, {"command": "history", "session_id": "x", "run": first["id"]}, database=database)
    assert events[0]["type"] == "NotFound"


async def test_an_imported_session_has_its_dates(endpoint: Endpoint, database: str) -> None:
    async with hitherto.open(database, worker=False) as memory:
        chat = memory.conversation("s", scope=Scope(tenant="local", user="me", agent=AGENT))
        await chat.append(user("Hello.", at=datetime(2025, 5, 1, tzinfo=UTC)))
    sessions, history = answered(
        endpoint, {"command": "sessions"}, {"command": "history", "session_id": "s"}, database=database
    )
    assert sessions["sessions"][0]["updated_at"] == "2025-05-01T00:00:00+00:00"
    assert history["messages"][0]["created_at"] == "2025-05-01T00:00:00+00:00"


BROKEN: dict[str, bytes] = {
    "no JSON": b"nonsense\n",
    "no object": b"[1]\n",
    "a number": b"7\n",
    "deep": b"[" * 100_000 + b"\n",
    "no UTF-8": b'{"command": "help", "id": "\xff"}\n',
    "no command": b"{}\n",
    "unknown": b'{"command": "fly"}\n',
    "of another kind": b'{"command": 7}\n',
    "a field too many": b'{"command": "help", "more": 1}\n',
    "a field too few": b'{"command": "run"}\n',
    "empty": b'{"command": "run", "message": ""}\n',
    "a wrong value": b'{"command": "run", "message": 7}\n',
    "a wrong name": b'{"command": "clear", "session_id": ""}\n',
    "a long name": b'{"command": "clear", "session_id": "%s"}\n' % (b"x" * 1_000),
    "NUL": b'{"command": "clear", "session_id": "a\\u0000"}\n',
    "half a character": b'{"command": "clear", "session_id": "\\ud800"}\n',
    "two strategies": b'{"command": "run", "message": "x", "memory_strategy":'
    b' {"memoryTrimming": true, "memoryCompacting": true}}\n',
    "a wrong strategy": b'{"command": "strategy", "memory_strategy": "nothing"}\n',
    "a wrong run": b'{"command": "history", "run": "x"}\n',
    "a wrong cursor": b'{"command": "sessions", "cursor": "x"}\n',
    "huge": b'{"command": "run", "message": "%s"}\n' % (b"x" * (2 * LONGEST)),
    "what the model refuses": b'{"command": "run", "message": "fail"}\n',
    "what does not fit": b'{"command": "run", "message": "%s"}\n' % (b"word " * 100_000),
}


def test_broken_lines_get_an_error_and_the_loop_goes_on(endpoint: Endpoint, database: str) -> None:
    lines = [part for broken in BROKEN.values() for part in (broken, b"\n \n", b'{"command": "clear", "id": "next"}\n')]
    events = [
        one for one in answered(endpoint, *lines, database=database) if "message" in one or one["event"] == "cleared"
    ]
    assert [one["event"] for one in events[1::2]] == ["cleared"] * len(BROKEN)
    told = dict(zip(BROKEN, events[::2], strict=True))
    assert all(0 < len(one["message"]) < 1_500 for one in told.values()), told
    failed = {name for name, one in told.items() if one["event"] == "run_failed"}
    assert failed == {"two strategies", "what the model refuses", "what does not fit"}
    assert {one["event"] for one in told.values()} == {"run_failed", "command_failed"}


def test_ctrl_c(endpoint: Endpoint, database: str) -> None:
    """While it waits for a line, and while a model does not answer."""
    for line in (b"", json.dumps(run("Wait.")).encode() + b"\n"):
        their_in, our_out = os.pipe()
        our_in, their_out = os.pipe()
        with Endpoint(Answer(silent=True)) as silent, open(os.devnull, "wb") as nowhere:
            environment = surroundings(silent, database)
            running = forked.Program(
                *WORDS, environment=environment, out=their_out, err=nowhere.fileno(), their_in=their_in
            )
            os.close(their_in)
            os.close(their_out)
            with open(our_out, "wb") as writing, open(our_in, "rb") as reading:
                writing.write(b'{"command": "clear"}\n' + line)
                writing.flush()
                assert b"cleared" in reading.readline()
                if line:
                    assert silent.reached.wait(PATIENCE)
                running.send_signal(signal.SIGINT)
                assert running.wait() == 130


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((EXAMPLES / "agent.json",), "--stdio"),
        (("nowhere.json", "--stdio"), "cannot read nowhere.json"),
        ((EXAMPLES / "support.jsonl", "--stdio"), "cannot read"),
        ((EXAMPLES / "agent.json", "--stdio"), "tool 'get_order'"),
        ((EXAMPLES / "agent.json", "--stdio", "--tools", "nowhere.py"), "cannot run nowhere.py"),
        ((EXAMPLES / "agent.json", "--stdio", "--tools", __file__), "TOOLS"),
    ],
    ids=str,
)
def test_wrong_usage(words: tuple[str | Path, ...], told: str) -> None:
    assert told in bare("agent", *words, "--database", "memory:").failed(2)


def test_without_a_memory(tmp_path: Path) -> None:
    file = tmp_path / "plain.json"
    file.write_text(json.dumps({"agent_id": "plain", "model": "m"}))
    assert '"memory"' in bare("agent", file, "--stdio", "--database", "memory:").failed(2)


def test_the_schemas_are_beside_the_page(endpoint: Endpoint, database: str) -> None:
    (event,) = answered(endpoint, {"command": "help"}, database=database)
    assert {"commands": event["commands"], "events": event["events"]} == schemas()
    written = write_schemas.OUTPUT.read_text(encoding="utf-8")
    assert json.loads(written) == schemas()
    assert written == write_schemas.text(), "the schemas have changed; run: python scripts/write_schemas.py"
    assert {kind.value for kind in EventKind} <= EVENTS.keys()
    page = (DOCS / "agent-stdio.md").read_text(encoding="utf-8")
    assert [name for name in (*COMMANDS, *EVENTS) if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    "words", [("agent", "FILE", "--stdio"), ("serve", "--database", "memory:", "--other-systems", "--agent", "FILE")]
)
def test_without_the_extra(words: tuple[str, ...]) -> None:
    program = "import sys; sys.modules['agents'] = None; from hitherto.cli import main; main()"
    given = [word.replace("FILE", str(EXAMPLES / "agent.json")) for word in words]
    done = subprocess.run(
        [sys.executable, "-c", program, *given], capture_output=True, text=True, check=False, env=bare.surroundings()
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "hitherto: the OpenAI Agents SDK is not installed; install it with: pip install 'hitherto[agents]'\n"
    )


def test_a_run_ends_with_one_event_of_its_own(endpoint: Endpoint, database: str) -> None:
    """What goes wrong within a run is an `error`, and no other event is called that."""
    bad = {**run("x"), "session_id": "", "id": 1}
    events = answered(endpoint, {**run("Now fail."), "id": 1}, bad, b"nonsense\n", database=database)
    assert [one["event"] for one in events] == [
        "run_started", "error", "run_failed", "command_failed", "command_failed",
    ]  # fmt: skip
    assert "payload" in events[1]


@pytest.mark.parametrize("left_out", ["model", "key"])
def test_an_agent_that_could_not_answer_is_refused_at_the_start(
    endpoint: Endpoint, database: str, tmp_path: Path, left_out: str
) -> None:
    agent = json.loads((EXAMPLES / "agent.json").read_text())
    environment = surroundings(endpoint, database)
    if left_out == "model":
        del agent["model"]
    else:
        del environment["OPENAI_API_KEY"]
    (tmp_path / "agent.json").write_text(json.dumps(agent))
    given = json.dumps(run("Hello.")).encode() + b"\n"
    ended = forked.run(
        "agent", str(tmp_path / "agent.json"), "--stdio", *WORDS[3:], given=given, environment=environment
    )
    assert (ended.code, ended.out) == (2, b"")
    assert (b"names no model" if left_out == "model" else b"no api_key") in ended.err


def test_the_agents_own_model_makes_the_summaries(endpoint: Endpoint, database: str, tmp_path: Path) -> None:
    """ "Optional model override used only for summaries. Defaults to the primary" one. The knobs are flags, too."""
    agent = {"agent_id": "a", "resources": ["memory"], "model": "big"}
    (tmp_path / "agent.json").write_text(json.dumps(agent))
    words = ("agent", str(tmp_path / "agent.json"), "--stdio", "--policy", "rolling:threshold=2,keep_last=1")
    lines = b"".join(json.dumps(run(f"Question {n}")).encode() + b"\n" for n in range(4))
    ended = forked.run(*words, given=lines, environment=surroundings(endpoint, database))
    assert ended.code == 0, ended.err
    assert json.loads(ended.out.splitlines()[-1])["run"]["strategy"] == "rolling"
    assert any("response_format" in body or "json" in str(body).lower() for body in endpoint.asked), (
        "a digest was asked"
    )
    assert {body["model"] for body in endpoint.asked} == {"big"}
