"""A coding agent: sixty steps with real tools on a small repository, in one turn and a budget of 4,000 tokens."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hitherto import Context, Conversation, Memory, tool_result
from hitherto.core.log.message import Wire
from hitherto.integrations.memory_tools import MemoryTools, memory_tools
from hitherto.simulation.figures import Repeats
from hitherto.simulation.work import SentTokens, request_text
from hitherto.store.store import Store
from hitherto.testing.requests import refusals
from hitherto.tokens import counter_for
from hitherto.wire import codec
from tests.conftest import SCOPE
from tests.engine.turn.asking import APIS, Api
from tests.memories import open_on
from tests.providers.models.endpoint import Answer, Body, Endpoint

INSTRUCTIONS = "You are a coding agent. Old results may be shortened in what you see: expand shows them word for word."
TASK = (
    "The balances of three customers are off by one cent. Find the function that rounds half values up, mend it, and "
    "make check_rounding.py pass. Read every module first, because some may rely on it. Then write into COLOR.md in "
    "which color closed ledgers are bound, and into CODE.md with which code a job of build.log ended. Two rules hold: "
    "never touch held_2019.py, which is kept for the court; never add a dependency."
)
MODULES = ("accounts", "calendars", "caches", "exports", "imports", "parsers", "rates", "reports", "rounding", "taxes")
BUG, MENDED = "return int(value + 0.5)", "return round(value)"
COLOR, CODE = "vermilion", "E-5521"
STEPS = 60


def write_repository(root: Path) -> None:
    """A dozen Python files, one of which has a bug, and a log of 100,000 characters."""
    (root / "ledger").mkdir()
    for at, module in enumerate(MODULES):
        lines = [f'"""The {module} of the ledger."""', "", ""]
        for number in range(6 + at % 4):
            lines += [
                f"def {module}_{number}(value: float) -> float:",
                f'    """What the {module} make of a value in step {number} of the close."""',
                f"    return value * {1_000 + 37 * at + number} + {number}",
                "",
                "",
            ]
        if module == "exports":
            lines.append(f"# Whoever closes a ledger has it bound in {COLOR} cloth, and in no other.")
        if module == "rounding":
            lines += ["def round_half_even(value: float) -> int:", f"    {BUG}"]
        (root / "ledger" / f"{module}.py").write_text("\n".join(lines) + "\n")
    (root / "ledger" / "held_2019.py").write_text('HELD = "AU-2019-771"\n')
    (root / "check_rounding.py").write_text(
        "from ledger.rounding import round_half_even\n\nassert round_half_even(2.5) == 2\nprint('passed')\n"
    )
    jobs = [f"job {at} of the nightly build took {at * 7 % 997} ms" for at in range(3_000)]
    jobs[900] = f"job 900 of the nightly build did not finish and ended with code {CODE}"
    (root / "build.log").write_text("\n".join(jobs)[:100_000])


class Tools:
    """What the agent works with in `root`, and how it looks into its conversation."""

    def __init__(self, root: Path, memory: Memory, look: MemoryTools) -> None:
        self._root, self._memory, self._look = root, memory, look

    async def run(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "expand":
            return await self._look.expand(**arguments)
        if name == "recall":
            await self._memory.wait_for_index()
            return json.dumps(await self._look.recall(**arguments))
        return await asyncio.to_thread(getattr(self, name), **arguments)

    def list_files(self) -> str:
        return "\n".join(sorted(str(one.relative_to(self._root)) for one in self._root.rglob("*.*")))

    def read_file(self, path: str) -> str:
        return (self._root / path).read_text()

    def grep(self, pattern: str) -> str:
        return "\n".join(
            f"{one.relative_to(self._root)}:{number}:{line}"
            for one in sorted(self._root.rglob("*.py"))
            for number, line in enumerate(one.read_text().splitlines(), 1)
            if re.search(pattern, line)
        )

    def write_file(self, path: str, content: str) -> str:
        return f"{(self._root / path).write_text(content)} characters written"

    def run_test(self) -> str:
        done = subprocess.run(
            [sys.executable, "check_rounding.py"],
            cwd=self._root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def schemas(wire: Wire, look: MemoryTools) -> list[dict[str, Any]]:
    """The tools as the API takes them."""
    text, nothing = {"type": "string"}, dict[str, Any]()
    own = {
        "list_files": nothing,
        "read_file": {"path": text},
        "grep": {"pattern": text},
        "write_file": {"path": text, "content": text},
        "run_test": nothing,
    }
    functions = [
        {"name": name, "parameters": {"type": "object", "properties": taken, "required": [*taken]}}
        for name, taken in own.items()
    ]
    functions += [one["function"] for one in look.schemas]
    match wire:
        case "openai.chat":
            return [{"type": "function", "function": one} for one in functions]
        case "openai.responses":
            return [{"type": "function", **one} for one in functions]
        case "anthropic":
            return [{"name": one["name"], "input_schema": one["parameters"]} for one in functions]


Ask = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


def plan(wire: Wire) -> list[Callable[[Body], Ask]]:
    """What the model calls at each step; some of it follows from the request."""

    def always(name: str, **arguments: Any) -> Callable[[Body], Ask]:
        return lambda body: (name, arguments)

    def mend(body: Body) -> Ask:
        """The newest result is the file that was read."""
        source = request_text(body, wire)
        source = source[source.rindex('"""The rounding of') : source.rindex(BUG) + len(BUG)]
        return "write_file", {"path": "ledger/rounding.py", "content": source.replace(BUG, MENDED) + "\n"}

    def shortened(body: Body) -> Ask:
        """What the request says of the module that was read some steps ago."""
        (seq,) = re.findall(r"shortened; expand message (\d+) for all⟧ The exports", request_text(body, wire))
        return "expand", {"start": int(seq), "end": int(seq)}

    def left_out(body: Body) -> Ask:
        """What the newest result says, which is that of a search."""
        text = request_text(body, wire)
        found, _ = json.JSONDecoder().raw_decode(text, text.rindex('{"note"'))
        hit = next(one for one in found["hits"] if "nightly build" in one["content"])
        return "expand", {name: hit[name] for name in ("start", "end", "character")}

    def note(path: str, pattern: str) -> Callable[[Body], Ask]:
        """The newest result is what was read word for word."""

        def write(body: Body) -> Ask:
            text = request_text(body, wire)
            found = re.findall(pattern, text[text.rindex("From this conversation's log") :])
            return "write_file", {"path": path, "content": " ".join(found)}

        return write

    reads = [always("read_file", path=f"ledger/{module}.py") for module in MODULES]
    greps = [always("grep", pattern=f"def {module}_") for module in MODULES]
    steps = [always("list_files"), always("run_test"), *reads, always("read_file", path="build.log"), *greps[:2]]
    steps += [shortened, note("COLOR.md", r"bound in (\w+) cloth"), *greps, *reads]
    steps += [always("read_file", path="ledger/rounding.py"), mend, always("run_test"), *greps]
    steps += [always("recall", question="job that did not finish, code"), left_out, note("CODE.md", r"E-\d+")]
    return steps + [always("read_file", path="CODE.md")] * (STEPS - len(steps))


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store) as opened:
        yield opened


async def with_everything(memory: Memory, chat: Conversation, **options: Any) -> AsyncIterator[Context]:
    """A context before each of the assistant's messages, with all that was said so far but the log of the build: with
    that, anything would be cheaper."""
    whole = memory.conversation("whole", scope=SCOPE, policy="none")
    for one in await chat.messages():
        if one.message.role == "assistant":
            yield await whole.context(budget=1_000_000, **options)
        long = len(one.message.text) > 50_000
        await whole.append(tool_result(one.message.answers[0], "") if long else one.message)


def cost(contexts: Sequence[Context]) -> float:
    """In tokens that are not cached; those that are cost half."""
    first = contexts[0].manifest
    repeats, tokens = Repeats(codec(first.wire), counter_for(first.encoding)), SentTokens()
    for one in contexts:
        tokens.sent += one.tokens
        tokens.repeated += repeats.of(one.request)
    return tokens.cost(0.5)


@pytest.mark.parametrize("api", APIS, ids=[one.wire for one in APIS])
async def test_sixty_steps_at_4000_tokens(memory: Memory, api: Api, tmp_path: Path) -> None:
    write_repository(tmp_path)
    held = (tmp_path / "ledger" / "held_2019.py").read_text()
    look = memory_tools(memory, SCOPE, "c")
    tools = Tools(tmp_path, memory, look)
    always: dict[str, Any] = {"wire": api.wire, "instructions": INSTRUCTIONS, "tools": schemas(api.wire, look)}
    chat = memory.conversation("c", scope=SCOPE)
    contexts: list[Context] = []

    def answer(at: int, ask: Callable[[Body], Ask]) -> Callable[[Body], Answer]:
        def call(body: Body) -> Answer:
            name, arguments = ask(body)
            return api.streamed(calls=[(f"call_{at}", name, json.dumps(arguments))])

        return call

    answers = [answer(at, ask) for at, ask in enumerate(plan(api.wire))]
    with Endpoint(*answers, api.streamed("Mended."), path=api.path) as endpoint:
        async with chat.turn(TASK, budget=4_000, reserve=500, **always) as turn:
            while not turn.done:
                contexts.append(turn.context)
                async for _ in turn.stream(await api.ask(endpoint.root, turn.request)):
                    pass
                for one in turn.calls:
                    await turn.add(tool_result(one.id, await tools.run(one.name, json.loads(one.arguments))))
    assert turn.text == "Mended."
    assert len(endpoint.asked) == STEPS + 1
    for body, context in zip(endpoint.asked, contexts, strict=True):
        assert TASK in request_text(body, api.wire, users=True)
        assert INSTRUCTIONS in request_text(body, api.wire)
        assert refusals(body, wire=api.wire) == []
        assert context.tokens <= 3_500
    assert (await tools.run("run_test", {})).startswith("exit 0")
    assert (tmp_path / "ledger" / "held_2019.py").read_text() == held
    assert (tmp_path / "COLOR.md").read_text() == COLOR, "a shortened result was read word for word"
    assert (tmp_path / "CODE.md").read_text() == CODE, "a result that was left out was found and read"
    everything = [one async for one in with_everything(memory, chat, **always)]
    assert cost(contexts) < cost(everything)
