"""The command line as its users meet it: a process of its own, on a real PostgreSQL."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitherto
from hitherto import Manifest, assistant, user
from hitherto.cli.app import COMMANDS, command_of
from hitherto.cli.replay.run import Replayed, account
from hitherto.core.policy.span import Fate, Reason, Span
from hitherto.store import rows
from tests.acceptance.cli.commands import (
    NOWHERE,
    SCOPE,
    SUPPORT,
    Cli,
    Ran,
    bare,
    chat,
    executed,
    processes_in,
    stored,
    written,
)
from tests.patience import PATIENCE
from tests.providers.models.endpoint import Answer, Endpoint, refused


@pytest.fixture(scope="module")
def support(cli: Cli) -> dict[str, Any]:
    """The JSON of a replay of the support conversation, which the other commands can then look at."""
    ran = cli("replay", SUPPORT, "--policy", "sliding_window", "--budget", "1500", "--json")
    assert (ran.code, ran.err) == (0, "")
    return ran.json


def test_help_and_version() -> None:
    shown = bare("-h")
    assert (shown.code, shown.err) == (0, "")
    for command in ("demo", "replay", "log", "context", "digests"):
        assert re.search(rf"^  {command} ", shown.out, re.MULTILINE)
    assert "FILE" in bare("replay", "--help").out
    assert bare("--version") == Ran(0, "hitherto 0.1.0\n", "")
    assert bare() == Ran(2, "", shown.out)
    assert bare("bench") == Ran(2, "", bare("bench", "--help").out)


def test_the_list_of_commands_says_what_each_says() -> None:
    assert {name: command_of(name).help.partition("\n\n")[0] for name in COMMANDS} == COMMANDS


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["--help"], {}),
        (["--version"], {}),
        ([], {"_HITHERTO_COMPLETE": "complete_bash", "COMP_WORDS": "hitherto re", "COMP_CWORD": "1"}),
    ],
    ids=["help", "version", "completion"],
)
def test_the_list_of_commands_loads_none_of_them(words: list[str], given: dict[str, str]) -> None:
    """It is there at once: what a command needs is loaded when that command runs."""
    program = (
        "import json, sys, hitherto; before = set(sys.modules); from hitherto.cli import main\n"
        "try: main()\n"
        "finally: print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=True,
        env=bare.surroundings(**given),
    )
    assert done.stdout
    loaded = {name for name in json.loads(done.stderr) if name.partition(".")[0] in {"hitherto", "rich", "psycopg"}}
    small = {"hitherto.core", "hitherto.core.scope", "hitherto.errors"}
    assert loaded == small | {"hitherto.cli", "hitherto.cli.app", "hitherto.cli.options", "hitherto.cli.terminal"} | {
        "hitherto.cli.terminal.output"
    }


def test_the_first_thing_anyone_runs() -> None:
    """On a machine that has nothing: no key, no network, no server. And nothing runs on after it."""
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    proxy = f"http://{NOWHERE}"
    ran = Cli(folder / "pg")("demo", HTTPS_PROXY=proxy, HTTP_PROXY=proxy, OPENAI_API_KEY="not to be used")
    assert (ran.code, ran.err) == (0, "")
    assert processes_in(folder) == []
    shutil.rmtree(folder)

    shown, _, tries = ran.out.partition("What to try next")
    assert max(map(len, shown.splitlines())) <= 80
    requests = re.findall(r"^ +(\d+) +([\d,]+) +([\d,]+)  █+░* +(?:\d+|–)  \S", shown, re.MULTILINE)
    assert [int(number) for number, _, _ in requests] == list(range(1, 43))
    assert all(int(context.replace(",", "")) <= 2_000 for _, _, context in requests)
    # It ends with a question about the beginning, and what answers it is in its context.
    said = " ".join(re.sub(r" *│\n?│? *", " ", shown).split())
    assert "What exactly is Ansa allergic to, and what does she carry?" in said
    assert "severe tree nut allergy: she carries a pen" in said
    sent, full = re.findall(r"Asked after 42 requests: ([\d,]+) tokens are sent, instead of ([\d,]+)", shown)[0]
    assert int(sent.replace(",", "")) <= 2_000 < 8_000 < int(full.replace(",", ""))
    assert re.search(r"^ +2–\d +recalled +recalled for the incoming message ", shown, re.MULTILINE)
    assert "85 messages in 42 requests" in shown
    assert re.search(r"of which \d\d% repeat the request before", said)
    for command in ("log demo", "recall ", "context demo", "replay "):
        assert f"hitherto {command}" in tries


def test_what_the_demo_says_to_try_next_works(cli: Cli) -> None:
    demo = cli("demo", "--user", "O'Neill [/b]")
    tries = re.findall(r"hitherto (?:log|recall|context) .*", demo.out)
    assert len(tries) == 3
    for line in tries:
        ran = cli(*shlex.split(line)[1:])
        assert (ran.code, ran.err) == (0, "")
        assert ran.out


# What the commands print


def test_the_json_of_a_replay(support: dict[str, Any]) -> None:
    assert set(support) == {"conversations", "repeated", "seconds"}
    found = dict(support["conversations"][0])
    items = [json.loads(line) for line in SUPPORT.read_text().splitlines()]
    requests, digests = found.pop("per_request"), found.pop("digests")
    assert found.pop("repeated") == pytest.approx(support["repeated"], abs=0.001)
    assert found == {
        "id": "support",
        "messages": len(items),
        "requests": len(requests),
        "full_tokens": sum(one["full_tokens"] for one in requests),
        "context_tokens": sum(one["context_tokens"] for one in requests),
        "max_context_tokens": max(one["context_tokens"] for one in requests),
        "over_budget": 0,
        "gaps": 0,
        "overlaps": 0,
    }
    assert [set(one) for one in requests] == [{"seq", "full_tokens", "context_tokens", "digest_end"}] * len(requests)
    # One before each answer: for a user's message, and for the results that the assistant goes on from.
    asked = [seq for seq, item in enumerate(items) if item["role"] in ("user", "tool")]
    assert [one["seq"] for one in requests] == [seq for seq in asked if seq - 1 not in asked]
    assert [set(one) for one in digests] == [{"id", "start", "end", "base", "action", "status", "tokens"}] * len(
        digests
    )
    assert [one["base"] for one in digests] == [None, *(one["id"] for one in digests[:-1])]
    assert {one["status"] for one in digests} == {"completed"}
    # A request sees the newest digest that the rounds before it left.
    ends = [[end["end"] for end in digests if end["end"] < one["seq"]] for one in requests]
    assert [one["digest_end"] for one in requests] == [max(before, default=None) for before in ends]


def test_the_log_has_every_message(cli: Cli, support: dict[str, Any]) -> None:
    log = cli("log", "support", "--json").json
    assert log["conversation"] == "support"
    assert [set(one) for one in log["messages"]] == [
        {
            "seq",
            "role",
            "kind",
            "tokens",
            "rev",
            "created_at",
            "said_at",
            "expires_at",
            "id",
            "cleared",
            "retracted",
            "erased",
        }
        | {"wire", "metadata", "payload"}
    ] * support["conversations"][0]["messages"]
    assert [json.dumps(one["payload"]) for one in log["messages"]] == [
        json.dumps(json.loads(line)) for line in SUPPORT.read_text().splitlines()
    ]
    part = cli("log", "support", "--start", "3", "--limit", "2", "--json").json
    assert part["messages"] == log["messages"][3:5]

    shown = cli("log", "support").out.splitlines()
    assert max(map(len, shown)) <= 80
    assert [int(seq) for seq in re.findall(r"^ *(\d+)  \S", "\n".join(shown), re.MULTILINE)] == list(range(30))


def test_a_context_with_its_manifest(cli: Cli, support: dict[str, Any]) -> None:
    found = cli("context", "support", "--message", "And now?", "--budget", "900", "--json").json
    assert set(found) == {"request", "manifest"}
    assert found["request"]["messages"][-1]["content"].endswith("And now?")
    manifest = found["manifest"]
    assert manifest["total"] == sum(manifest["sections"].values()) <= manifest["budget"] == 900
    covered = [seq for span in manifest["fates"] for seq in range(span["start"], span["end"] + 1)]
    assert covered == list(range(support["conversations"][0]["messages"]))

    first = cli("context", "support", "--at", "1", "--policy", "none", "--wire", "anthropic", "--json").json
    assert (first["manifest"]["rev"], first["manifest"]["wire"]) == (1, "anthropic")
    assert {span["fate"] for span in first["manifest"]["fates"]} == {"in"}

    shown = cli("context", "support", "--message", "And now?").out
    assert max(map(len, shown.splitlines())) <= 80
    assert "And now?" in shown
    assert re.search(r"^ +0–\d+ +\w+", shown, re.MULTILINE)


def test_the_digests(cli: Cli, support: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rows.PAGE, "size", 1)  # a page for each
    found = cli("digests", "support", "--json").json
    assert found["conversation"] == "support"
    names = ("id", "start", "end", "base", "action", "status", "tokens")
    brief = [{name: one[name] for name in names} for one in found["digests"]]
    assert brief == support["conversations"][0]["digests"]
    assert all(item["text"] and item["sources"] for one in found["digests"] for item in one["items"])

    shown = cli("digests", "support").out
    assert max(map(len, shown.splitlines())) <= 80
    table, _, newest = shown.partition(f"Digest {found['digests'][-1]['id']} in full")
    assert table.count("completed") == len(found["digests"]) == len(table.strip().splitlines()) - 3
    assert all(item["text"].split()[0] in newest for item in found["digests"][-1]["items"])
    assert len(cli("digests", "support", COLUMNS="200").out.splitlines()[2]) > 160


def test_progress_is_for_a_terminal_and_not_on_standard_output(cli: Cli) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        cli.command("replay", SUPPORT, "--json"), stdout=subprocess.PIPE, stderr=theirs, env=cli.surroundings()
    ) as running:
        os.close(theirs)
        progress = b""
        while select.select([ours], [], [], 30)[0]:
            try:
                progress += os.read(ours, 4096)
            except OSError:  # how Linux says that the other end was closed
                break
        assert running.stdout is not None
        assert json.loads(running.stdout.read())["conversations"][0]["id"] == "support"
    os.close(ours)
    assert b"replaying support" in progress


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted), max_size=6), st.integers(0, 9))
def test_gaps_and_overlaps_are_what_they_say(fates: list[list[int]], total: int) -> None:
    """A replay that always reports 0 would be worth nothing: manifests that no engine makes, counted naively too."""
    spans = [Span(start=start, end=end, fate=Fate.IN, reason=Reason.VERBATIM) for start, end in fates]
    found = Replayed(id="x", messages=10)
    account(found, Manifest.model_construct(fates=spans, total=total, reserve=1, budget=7))
    times = [sum(start <= seq <= end for start, end in fates) for seq in range(10)]
    assert found.gaps == times.count(0)
    assert found.overlaps == sum(one > 1 for one in times)
    assert found.over_budget == (total + 1 > 7)


# What goes wrong


@pytest.mark.parametrize(
    ("words", "given", "code", "why"),
    [
        (["forget"], {}, 2, "No such command 'forget'"),
        (["log"], {}, 2, "Missing argument 'ID'"),
        (["log", "x", "--colour"], {}, 2, "No such option: --colour"),
        (["context", "x", "--budget", "0"], {}, 2, "--budget"),
        (["log", "x", "--limit", "9" * 30], {}, 2, "--limit"),
        (["replay", "x", "--policy", "forever"], {}, 2, "no policy named 'forever'"),
        (["replay", str(SUPPORT), "--policy", "sliding_window:window=0"], {}, 2, "Window.n is 0"),
        (["log", "x", "--user", ""], {}, 2, "user is ''"),
        (["log", "x"], {"HITHERTO_POOL_SIZE": "many"}, 2, "HITHERTO_POOL_SIZE"),
        (
            ["demo", "--database", "memory:"],
            {"HITHERTO_MODEL": "m", "HITHERTO_MODEL_BASE_URL": "nowhere"},
            2,
            "HITHERTO_MODEL_BASE_URL",
        ),
        (["replay", "no such file"], {}, 1, "cannot read no such file: No such file or directory"),
        (["replay", str(SUPPORT), "--conversation", "conv-1"], {}, 1, "leave --conversation out"),
        (["log", "x", "--database", "memory:"], {}, 2, "memory: is empty when this command begins, and gone when"),
        (["demo", "--database", f"postgresql://me:secret@{NOWHERE}/db"], {}, 1, f"at {NOWHERE}/db"),
        (["log", "x"], {"HITHERTO_DATABASE": "http//me:secret@x"}, 1, "neither a PostgreSQL URL nor key=value"),
        (["migrate"], {"HITHERTO_DATA_DIR": "/dev/null/x"}, 1, "PostgreSQL cannot be kept in /dev/null/x"),
        (["log", "x"], {"HITHERTO_DATA_DIR": "/dev/null/x"}, 1, "there is no database yet: /dev/null/x does not exist"),
    ],
)
def test_a_clear_line_and_an_exit_code(words: list[str], given: dict[str, str], code: int, why: str) -> None:
    line = bare(*words, **given).failed(code)
    assert why in line
    assert "secret" not in line


def test_what_is_not_there_and_what_does_not_fit(cli: Cli, support: dict[str, Any]) -> None:
    assert "'support'" in cli("digests", "nobody").failed(1)
    assert "there is no conversation 'nobody' in scope local/me/cli" in cli("log", "nobody").failed(1)
    assert "conversation is ' '" in cli("log", " ").failed(2)
    assert "no revision 999" in cli("context", "support", "--at", "999").failed(1)
    assert "wire format is 'smoke'" in cli("context", "support", "--wire", "smoke").failed(2)
    assert "12 tokens, 7 more than the budget of 5" in cli(
        "context", "support", "--budget", "5", "--message", "Hello, you three."
    ).failed(1)


def test_a_bad_transcript_stores_nothing(database: str, tmp_path: Path) -> None:
    path = written(tmp_path / "cut.jsonl", *chat(3))
    with path.open("a") as file:
        file.write('{"role": "user", "con\n' + json.dumps(chat(1)[0]) + "\n")
    line = bare("replay", path, "--database", database, "--json").failed(1)
    assert "line 7: " in line
    assert "not JSON" in line
    assert stored(database) == []


def test_a_message_over_the_budget_changes_nothing(database: str, tmp_path: Path) -> None:
    """Not even the replay before it is lost, nor is the file half replayed."""
    path = written(tmp_path / "talk.jsonl", *chat(2))
    assert bare("replay", path, "--database", database).code == 0
    written(path, *chat(3), *chat(1, words="word " * 100))
    line = bare("replay", path, "--budget", "50", "--database", database).failed(1)
    over = re.search(r"talk: the user message with seq 6 takes (\d+) tokens, (\d+) more than the budget of 50", line)
    assert over is not None
    assert int(over[1]) - int(over[2]) == 50
    assert stored(database) == [("talk", 4)]
    assert bare("replay", path, "--budget", over[1], "--database", database).code == 0


async def test_a_replay_replaces_a_replay_and_nothing_else(database: str, tmp_path: Path) -> None:
    path = written(tmp_path / "talk.jsonl", {"title": "Small talk"}, *chat(5))
    first, second = (bare("replay", path, "--database", database, "--json").json for _ in range(2))
    ids = [one.pop("id") for replayed in (first, second) for one in replayed["conversations"][0]["digests"]]
    assert len(set(ids)) == len(ids)
    for replayed in (first, second):
        for one in replayed["conversations"][0]["digests"]:
            del one["base"]
    assert first["conversations"] == second["conversations"]
    assert stored(database) == [("talk", 10)]

    async with hitherto.open(database) as memory:
        assert [one.title for one in (await memory.conversations(SCOPE)).conversations] == ["Small talk"]
        await memory.conversation("mine", scope=SCOPE).append(user("keep this"), assistant("I will"))
    line = bare("replay", written(tmp_path / "mine.jsonl", *chat(5)), "--database", database).failed(1)
    assert "not made by a replay" in line
    assert stored(database) == [("mine", 2), ("talk", 10)]


async def test_what_was_cleared_is_said_to_be(database: str, tmp_path: Path) -> None:
    assert bare("replay", written(tmp_path / "talk.jsonl", *chat(5)), "--database", database).code == 0
    async with hitherto.open(database) as memory:
        await memory.conversation("talk", scope=SCOPE).clear()
    log = bare("log", "talk", "--database", database)
    assert log.out.count("(cleared)") == 10
    digests = bare("digests", "talk", "--database", database)
    assert "clear " in digests.out
    assert "None of them has statements that stand now" in digests.out


def test_a_database_of_a_newer_hitherto(database: str) -> None:
    executed(database, "update hitherto.alembic_version set version_num = '9001'")
    line = bare("demo", "--database", database).failed(1)
    assert "revision 9001" in line
    assert "upgrade Hitherto" in line


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (refused(401, "Incorrect API key provided: sk-wrong-key."), "refused the key"),
        (Answer(body="<html>\x1b[31m[/red] It works!</html>"), "no chat completion"),
    ],
    ids=["wrong key", "nonsense"],
)
def test_a_model_that_fails_each_time(answer: Answer, why: str, tmp_path: Path) -> None:
    """The contexts go on without it, and the end says so: how many failed, and why."""
    path = written(tmp_path / "talk.jsonl", *chat(4))
    with Endpoint(answer) as endpoint:
        ran = bare(
            *("replay", path, "--policy", "sliding_window", "--database", "memory:", "--json"),
            HITHERTO_MODEL="m",
            HITHERTO_MODEL_KEY="sk-wrong-key",
            HITHERTO_MODEL_BASE_URL=endpoint.url,
        )
    assert ran.code == 0
    (found,) = ran.json["conversations"]
    assert [(one["end"], one["status"]) for one in found["digests"]] == [(5, "failed"), (7, "failed")]
    assert (found["full_tokens"], found["over_budget"], found["gaps"]) == (found["context_tokens"], 0, 0)
    first, *_, last = ran.err.splitlines()
    assert why in first
    assert "2 of 2 digests failed, and the contexts went on without them" in last
    assert why in last
    assert ran.err.count("\n") == 3
    assert "sk-wrong" not in ran.err


# What is in the messages, and where the output goes


def test_hostile_content_is_harmless_everywhere(cli: Cli, tmp_path: Path) -> None:
    """`Cli` looks for what steers a terminal in everything that is printed."""
    hostile = (
        "\x1b[31mred\x1b]0;title\x07 \u202eright to left\u2066 \x00 \ud800 [red]x[/] [/nope] [link=http://x]y[/link] "
        "\x9b31m \r over \u2028 :smile: \t 日本語 {brace} %s <|endoftext|>"
    )
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": hostile}}
    items = [
        *chat(3, words=hostile),
        {"role": "user", "content": [{"type": "text", "text": hostile}], "name": hostile},
        {"role": "assistant", "content": hostile, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": hostile},
        {"role": "assistant", "content": hostile},
    ]
    path = written(tmp_path / "[red]\x1b[1m[].jsonl", *items)
    name = path.stem
    assert cli("replay", path, "--policy", "sliding_window").code == 0
    assert [one["payload"] for one in cli("log", name, "--json").json["messages"]] == items
    assert [one["status"] for one in cli("digests", name, "--json").json["digests"]] == ["completed"] * 2
    for command in ("log", "digests", "context"):
        ran = cli(command, name)
        assert (ran.code, ran.err) == (0, "")
        assert "[red]x[/] [/nope]" in " ".join(ran.out.split())
    assert cli("context", name, "--policy", "none", "--message", "[/]\x1b[2J").code == 0
    assert "[/]" in cli("log", "[/]\x1b[2J").failed(1)
    cli("log", name, "--user", "[/]\x1b[2J").failed(1)
    cli("[/]\x1b[2J").failed(2)


def test_output_in_ascii() -> None:
    demo = bare("demo", "--database", "memory:", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (demo.code, demo.err) == (0, "")
    assert demo.out.isascii()
    assert re.search(r"^ +42  8,715    1,\d\d\d  #+\.+ +-  Last one", demo.out, re.MULTILINE)


def test_a_reader_that_has_seen_enough(cli: Cli, support: dict[str, Any]) -> None:
    for words in (("log", "support"), ("log", "support", "--json")):
        with subprocess.Popen(
            cli.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cli.surroundings()
        ) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdout.close()
            assert running.stderr.read() == b""
        assert running.returncode == 0


def test_a_full_disk(cli: Cli, support: dict[str, Any]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            cli.command("log", "support"), stdout=full, stderr=subprocess.PIPE, check=False, env=cli.surroundings()
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"No space left on device" in done.stderr


def test_ctrl_c_while_a_model_thinks() -> None:
    code, lines = stopped(bare, signal.SIGINT, "demo", "--database", "memory:")
    assert (code, lines) == (130, ["hitherto: interrupted"])


def test_ctrl_c_while_it_is_being_imported() -> None:
    program = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'hitherto.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from hitherto.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "hitherto: interrupted\n")


def test_a_command_that_is_terminated_takes_its_server_along() -> None:
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    cli = Cli(folder / "pg")
    code, lines = stopped(cli, signal.SIGTERM, "demo")
    assert (code, lines) == (143, [])
    assert processes_in(folder) == []
    *_, row = cli("digests", "demo", "--json").json["digests"]
    assert (row["status"], row["claimed"], row["tries"]) == ("processing", False, 0), "it was handed back"
    shutil.rmtree(folder)


def stopped(cli: Cli, number: signal.Signals, *words: str | Path) -> tuple[int, list[str]]:
    """How a command ends that gets a signal while its first digest is being made: the code, and standard error."""
    with Endpoint(Answer(silent=True)) as endpoint:
        model = {"HITHERTO_MODEL": "m", "HITHERTO_MODEL_BASE_URL": endpoint.url, "HITHERTO_GRACE": "0"}
        with subprocess.Popen(
            cli.command(*words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=cli.surroundings(**model),
        ) as running:
            assert endpoint.reached.wait(PATIENCE)
            running.send_signal(number)
            out, err = running.communicate(timeout=PATIENCE)
    assert out == ""
    return running.returncode, err.splitlines()


def test_a_defect_is_one_line_too() -> None:
    broken = "from hitherto.cli.replay import command; command.load = lambda *_, **__: 1 / 0"
    program = f"{broken}; from hitherto.cli import main; main()"
    lines: dict[str, list[str]] = {}
    for asked in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program, "replay", "x"],
            capture_output=True,
            text=True,
            check=False,
            env=bare.surroundings(HITHERTO_TRACEBACK=asked),
        )
        assert (done.returncode, done.stdout) == (1, "")
        lines[asked] = done.stderr.splitlines()
    (line,) = lines[""]
    assert line.startswith("hitherto: a bug in Hitherto: ZeroDivisionError: division by zero.")
    assert "HITHERTO_TRACEBACK=1" in line
    assert lines["1"][0].startswith("Traceback")
    assert lines["1"][-1] == line
