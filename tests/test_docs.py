"""README and docs say what is: their Python runs, their commands are commands, what they list is complete.

The conventions of the pages:

- Blocks of `python` run in order, one namespace a page, in README one a block: each can be typed alone. `await` may
  stand outside of a function.
- A block of `text` right behind one of `python` is what it prints; "…" stands for anything.
- In a block of `console`, lines after "$ " are commands, and what follows is what they print, likewise. Commands of
  `hitherto` run, those of docs/cli.md as processes; those with a setting in front, another server's address or a FILE
  in capitals, `hitherto serve` and `hitherto inspect`, are only parsed.
- Blocks of `py` are whole programs, which `tests/acceptance/test_web_pages.py` runs as processes.
- Blocks of `sql` that only read run on a database that has the schema.
- Where Python calls a service at `ADDRESS`, one is really served, at another port.

The OpenAI SDK finds an endpoint of our own in its environment, so that no block needs a key or reaches a network.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType
from typing import Any, Literal, get_args, get_origin

import psycopg
import pytest
from openai import AsyncOpenAI
from pydantic import TypeAdapter

import hitherto
from hitherto import Conversation, Memory, Scope, assistant, errors, user
from hitherto.cli import app
from hitherto.core.context.manifest import Manifest
from hitherto.core.log.message import Message
from hitherto.core.policy.component import _KNOWN
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import PRESETS
from hitherto.core.policy.span import Fate, Reason
from hitherto.http.operations import HEADERS, OPERATIONS
from hitherto.http.shapes import MessageInput
from hitherto.other_systems.views import create_views
from hitherto.settings import Settings
from hitherto.store.embedded.server import EmbeddedServer
from tests import called, forked
from tests.lengths import at_length, lasting
from tests.patience import PATIENCE
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
WIDTH = 100
ADDRESS = "http://127.0.0.1:8480"

COMMANDS: dict[str, Any] = {name: app.command_of(name) for name in app.COMMANDS}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PARSED_ONLY = re.compile(r"^serve|^inspect|postgresql://|(^| )[A-Z_]{2,}(\.\w+|=\S*)?( |$)")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block: what language it names, where its text begins, and what is said to come out."""

    language: str
    text: str
    line: int
    output: str | None = None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    follows = {one.start(): two for one, two in pairwise(found) if not text[one.end() : two.start()].strip()}
    made: list[Block] = []
    for match in found:
        behind = follows.get(match.start())
        made.append(
            Block(
                language=match[1],
                text=match[2],
                line=text.count("\n", 0, match.start()) + 1,
                output=behind[2] if match[1] == "python" and behind is not None and behind[1] == "text" else None,
            )
        )
    return made


def pages_with(language: str) -> list[Any]:
    return [
        pytest.param(page, id=page.name) for page in PAGES if any(block.language == language for block in blocks(page))
    ]


@dataclass(frozen=True)
class Shell:
    """One command of a console block, its settings in front, and what is said to come out."""

    settings: tuple[str, ...]
    words: tuple[str, ...]
    text: str
    output: str


def shells(page: Path) -> Iterator[Shell]:
    for block in blocks(page):
        if block.language != "console":
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            words = shlex.split(line, comments=True)
            words = words[: words.index("|")] if "|" in words else words
            settings = [word for word in words if re.match(r"[A-Z_]+=", word)]
            if words[len(settings) :][:1] == ["hitherto"]:
                yield Shell(tuple(settings), tuple(words[len(settings) + 1 :]), line, output)


_RUN_ON = "2026-11-28"
"""The day that pages show where it is the day on which they are run."""


def assert_printed(printed: str, expected: str, where: str) -> None:
    """Whether `printed` is `expected`, blanks at the ends of lines aside, with anything for "…"."""
    shown, wanted = (
        "\n".join(line.rstrip() for line in text.strip("\n").splitlines()).strip() for text in (printed, expected)
    )
    pattern = ".*?".join(re.escape(part) for part in wanted.split("…"))
    pattern = pattern.replace(re.escape(_RUN_ON), r"\d{4}-\d\d-\d\d")
    assert re.fullmatch(pattern, shown, re.DOTALL), f"{where} printed\n{shown}\n\nand not\n{wanted}"


@pytest.fixture(scope="module")
async def home() -> AsyncIterator[Path]:
    """The directory of a server that stays up while this file's tests come and go."""
    folder = Path(tempfile.mkdtemp(prefix="hitherto-"))
    server = await EmbeddedServer.start(folder / "pg")
    async with hitherto.open(server.url) as memory:  # what the pages' commands are asked of
        chat = memory.conversation("porto", scope=Scope(tenant="acme", user="ada", agent="travel"))
        await chat.append(user("Dinner at eight, please."), assistant("Booked."))
    await create_views(server.url)
    yield folder / "pg"
    await server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def surroundings(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A reader's machine: nothing set, a copy of the project as the working directory, and an endpoint for the OpenAI
    SDK."""
    for name in [name for name in os.environ if name.startswith(("HITHERTO_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(home))
    monkeypatch.setenv("HITHERTO_DATABASE_TIMEOUT", f"{PATIENCE}")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")  # traces would go to OpenAI
    before = {slot: dict(words) for slot, words in _KNOWN.items()}
    for one in ROOT.iterdir():
        (tmp_path / one.name).symlink_to(one)
    monkeypatch.chdir(tmp_path)
    with Endpoint(reply) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        yield
    for slot, words in before.items():  # parts of a page's own
        _KNOWN[slot].clear()
        _KNOWN[slot].update(words)


def reply(body: Body) -> Answer:
    """What the endpoint says: a call of the first tool to a user who offers tools, else a sentence."""
    last, tools = body["messages"][-1], body.get("tools", [])
    if tools and last["role"] == "user":
        call = {"name": tools[0]["function"]["name"], "arguments": '{"city": "Lisbon"}'}
        return said(None, finish="tool_calls", tool_calls=[{"id": "call_1", "type": "function", "function": call}])
    return said(f"That was {len(body['messages'])} messages.")


@contextmanager
def served(page: Path, *, python: str = sys.executable) -> Generator[str]:
    """The address of the service that the page's Python calls; where it calls none, none is served."""
    if not any(block.language == "python" and ADDRESS in block.text for block in blocks(page)):
        yield ADDRESS
        return
    command = [python, "-m", "hitherto", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        try:
            yield next(found[0] for line in running.stderr if (found := re.search(r"http://[\d.:]+\d", line)))
        finally:
            running.terminate()


@pytest.mark.parametrize("page", pages_with("python"))
def test_the_python_of(page: Path, surroundings: None) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with asyncio.Runner() as runner, served(page) as address:
        for block in blocks(page):
            if block.language != "python":
                continue
            if page.name == "README.md":
                close(runner, namespace)
                namespace = {"__name__": "__main__"}
            printed = io.StringIO()
            with redirect_stdout(printed):
                run(runner, compiled(page, block, address), namespace)
            if block.output is not None:
                assert_printed(printed.getvalue(), block.output, f"{page.name}, line {block.line}")
        close(runner, namespace)


def close(runner: asyncio.Runner, namespace: dict[str, Any]) -> None:
    """Closes what is left open where a reader's program would end."""
    for client in [value for value in namespace.values() if isinstance(value, AsyncOpenAI)]:
        runner.run(client.close())
    for memory in [value for value in namespace.values() if isinstance(value, Memory)]:
        runner.run(memory.aclose())


def compiled(page: Path, block: Block, address: str) -> CodeType:
    """The block's code, with the page's own line numbers for a traceback, and the service at this address."""
    source = "\n" * block.line + block.text.replace(ADDRESS, address)
    return compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def run(runner: asyncio.Runner, code: CodeType, namespace: dict[str, Any]) -> None:
    made = eval(code, namespace)
    if inspect.iscoroutine(made):
        runner.run(made)


@pytest.mark.parametrize("page", pages_with("console"))
def test_the_commands_of(page: Path, surroundings: None) -> None:
    for shell in shells(page):
        if shell.settings or _PARSED_ONLY.search(" ".join(shell.words)):
            command = COMMANDS[shell.words[0]]
            command.make_context(shell.words[0], list(shell.words[1:]))
            for setting in shell.settings:
                assert setting.partition("=")[0].removeprefix("HITHERTO_").lower() in Settings.model_fields
            continue
        if shell.words[0] == "simulate":
            continue  # see below
        code, out, err = (started if page.name == "cli.md" else call)(*shell.words)
        assert code == 0 or err, f"{page.name}: {shell.text} ended with {code} and said nothing"
        if shell.output.strip():
            assert_printed(out + err, shell.output, f"{page.name}: {shell.text}")


@lasting
@pytest.mark.parametrize("transcript", ["LOCOMO.json", "examples/incident.jsonl"])
def test_the_simulations(transcript: str, surroundings: None, request: pytest.FixtureRequest) -> None:
    """Two pages have a table of each transcript, one a part of the other's. At length the whole is simulated, else
    the first policy of the part that searches for nothing, which takes a tenth of the time."""
    found = [one for page in PAGES for one in shells(page) if one.words[:2] == ("simulate", transcript) and one.output]
    some, whole = sorted(found, key=lambda one: len(rows(one.output)))
    tables = {row[0]: row for row in rows(whole.output)}
    part = [row for row in rows(some.output) if row[0] in tables and "%" in "".join(row)]
    assert len(part) > 3
    assert [row for row in part if tables[row[0]] != row] == []
    words = list((whole if at_length() else some).words)
    if transcript == "LOCOMO.json":
        words[1] = str(request.getfixturevalue("locomo"))
    if at_length():
        _, out, err = started(*words)
        assert_printed(out + err, whole.output, whole.text)
        return
    policy = next(name for name in words[-1].split(",") if name != "balanced")
    code, out, err = started(*words[:-1], policy)
    assert (code, err) == (0, "")
    assert [row for row in part if row[0] in ("full", policy) and row not in rows(out)] == []


def rows(printed: str) -> list[list[str]]:
    """The lines of a table by their cells, without rules and without what was left out."""
    return [line.split() for line in printed.splitlines() if line.strip("─… ")]


def call(*words: str) -> tuple[int, str, str]:
    """The exit code of a command line of `hitherto`, and what it printed on its two streams."""
    done = called.call(*words, environment=dict(os.environ))
    return done.code, done.out.decode(), done.err.decode()


def started(*words: str) -> tuple[int, str, str]:
    """The same, in a process of its own."""
    done = forked.run(*words, environment=os.environ)
    return done.code, done.out.decode(), done.err.decode()


@pytest.mark.parametrize("page", pages_with("sql"))
def test_the_queries_of(page: Path, home: Path) -> None:
    queries = [block.text for block in blocks(page) if block.language == "sql" and reads(block.text)]
    assert queries
    address = f"postgresql://hitherto@/hitherto?host={home / 'data'}"
    with psycopg.connect(address, autocommit=True) as connection:
        for query in queries:
            connection.execute(query.encode())


def reads(query: str) -> bool:
    return re.match(r"(--.*\n|\s)*(select|with|set search_path)\b", query, re.IGNORECASE) is not None


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_the_links_of(page: Path) -> None:
    broken: list[str] = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = page if not path else (page.parent / path).resolve()
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index] == []


def everything() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def code_of(text: str) -> str:
    """What of a text is code: its blocks and what stands between backticks."""
    inline = re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    return "\n".join([*(match[2] for match in _FENCE.finditer(text)), *inline])


def section(page: Path, heading: str) -> str:
    """The part of a page under `heading`, up to the next one of its level."""
    text = _FENCE.sub(lambda match: match[0].replace("\n#", "\n "), page.read_text(encoding="utf-8"))
    match = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^#{{1,2}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match is not None, f"{page.name} has no section {heading!r}"
    return match[2]


def test_every_public_name_is_there() -> None:
    code = code_of(everything())
    assert [name for name in hitherto.__all__ if not re.search(rf"\b{name}\b", code)] == []


def test_every_verb_is_there() -> None:
    code = code_of((DOCS / "index.md").read_text(encoding="utf-8"))
    verbs = [name for kind in (Memory, Conversation) for name in vars(kind) if not name.startswith("_")]
    assert [name for name in verbs if f"{name}()" not in code] == []


def test_every_error_is_there() -> None:
    tree = [name for name, value in vars(errors).items() if isinstance(value, type)]
    code = code_of(everything())
    assert [name for name in tree if not re.search(rf"\b{name}\b", code)] == []


def test_every_command_is_in_the_readme() -> None:
    listed = section(ROOT / "README.md", "Command line")
    assert [name for name in COMMANDS if f"`hitherto {name}" not in listed] == []


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_option_is_there(command: str) -> None:
    text = section(DOCS / "cli.md", f"hitherto {command}") + section(DOCS / "cli.md", "Options of every command")
    said = code_of(text)
    of_group: dict[str, Any] = getattr(COMMANDS[command], "commands", {})
    assert [name for name in of_group if name not in said] == []
    for parameter in [one for each in (COMMANDS[command], *of_group.values()) for one in each.params]:
        names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar.rstrip(".")]
        for name in names:
            assert re.search(rf"(?<![\w-]){re.escape(name)}\b", said), f"{command} {name} is not in docs/cli.md"
        if parameter.default not in (None, False) and not callable(parameter.default):
            row = re.search(rf"^\|.*`{re.escape(names[0])}\b.*", text, re.MULTILINE)
            assert row is not None
            assert re.search(rf"(?<!\w){re.escape(str(parameter.default))}\b", row[0]), f"the default: {row[0]}"


def test_every_path_of_the_service_is_there() -> None:
    said = (DOCS / "service-api.md").read_text(encoding="utf-8")
    missing = [
        f"{one.method} {one.path}"
        for one in OPERATIONS
        if not re.search(rf"^\| `{re.escape(f'{one.method} {one.path}')}` \|.*\| `{one.right}` \|$", said, re.MULTILINE)
    ]
    assert missing == []


def test_every_header_is_there() -> None:
    said = (DOCS / "service-api.md").read_text("utf-8") + (DOCS / "service-keys.md").read_text("utf-8")
    assert [name for name in HEADERS if f"`{name}`" not in said] == []


def test_every_setting_is_there() -> None:
    """A row each: the setting, its name in the environment, its default."""
    page = (DOCS / "settings.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+?) \| (.+) \|$", page, re.MULTILINE)
    expected = [(name, f"HITHERTO_{name.upper()}") for name in Settings.model_fields]
    assert [row[:2] for row in rows] == expected
    for name, _, default, text in rows:
        field = Settings.model_fields[name]
        shown = "–" if field.default is None else f"`{field.default}`"
        assert default == shown, f"docs/settings.md has {default} for {name}, and it is {shown}"
        kinds = [one for one in (field.annotation, *get_args(field.annotation)) if get_origin(one) is Literal]
        missing = [value for kind in kinds for value in get_args(kind) if f"`{value}`" not in default + text]
        assert missing == [], f"docs/settings.md does not name all that {name} may be"


def test_every_field_of_a_message_is_there() -> None:
    for page, fields in (
        ("export.md", [*TypeAdapter(Message).json_schema(by_alias=False, mode="serialization")["properties"]]),
        ("service-api.md", [*MessageInput.model_fields]),
    ):
        text = (DOCS / page).read_text("utf-8")
        assert [name for name in fields if f"`{name}`" not in text and f'"{name}"' not in text] == [], page


def test_every_field_of_a_manifest_is_there() -> None:
    code = code_of((DOCS / "contexts.md").read_text(encoding="utf-8"))
    assert [name for name in Manifest.model_fields if not re.search(rf"\b{name}\b", code)] == []
    words = [*(fate.value for fate in Fate), *(reason.value for reason in Reason)]
    assert [word for word in words if word not in code] == []


def test_every_preset_is_there() -> None:
    code = code_of((DOCS / "choosing-a-policy.md").read_text(encoding="utf-8"))
    for name, preset in PRESETS.items():
        assert name in code
        assert isinstance(preset(), Policy)
        assert [each for each in inspect.signature(preset).parameters if f"`{each}`" not in everything()] == []


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("replay", ("examples/support.jsonl",)),
        ("simulate", ("examples/support.jsonl", "--policies", "none")),
        ("log", ("support",)),
        ("context", ("support", "--message", "And now?")),
        ("digests", ("support",)),
        ("costs", ()),
        ("doctor", ()),
        ("conversations", ()),
        ("scopes", ()),
        ("recall", ("order",)),
    ],
)
def test_every_field_of_the_json_is_there(command: str, arguments: tuple[str, ...], surroundings: None) -> None:
    if command != "replay":
        call("replay", "examples/support.jsonl")
    code, out, err = call(command, *arguments, "--json")
    assert code == 0, err
    described = section(DOCS / "cli.md", f"hitherto {command}")
    assert [name for name in keys(json.loads(out)) if f"`{name}`" not in described] == []


def keys(value: Any) -> set[str]:
    """The names in a command's JSON; what stands in a payload, a request, metadata or a manifest is not the CLI's."""
    if isinstance(value, list):
        return set[str]().union(*(keys(one) for one in value))
    if not isinstance(value, dict):
        return set()
    opaque = ("payload", "request", "metadata", "manifest")
    inner = [keys(one) for name, one in value.items() if name not in opaque]
    return set(value).union(*inner)
