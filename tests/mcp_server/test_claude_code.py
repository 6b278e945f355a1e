"""Claude Code itself, with a scripted model on loopback: it takes us up by one command, and answers from the memory.

It comes in the wheel `claude-agent-sdk`.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import hitherto
from hitherto import user
from hitherto.http.operations import AGENT, USER
from hitherto.importers import ImportSummary, import_file
from tests.conftest import SCOPE
from tests.http.serving import serving
from tests.mcp_server.test_stdio import OPTIONS

TOOL = "mcp__hitherto__recall"
QUESTION = "Where is the deploy key?"
ROOT = Path(__file__).parents[2]
LONGEST = 300
"""Seconds after which the program is taken to hang; it takes five."""


@pytest.fixture
def claude() -> Path:
    """The program."""
    found = find_spec("claude_agent_sdk")
    assert found is not None
    assert found.origin is not None
    program = Path(found.origin).parent / "_bundled" / "claude"
    if not program.exists():
        pytest.skip(f"Claude Code was NOT run: {program} is not there")
    return program


class ScriptedModel:
    """Asks for these tools one after the other, and answers with what they give. `requests` are those that it got."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls, self.requests = calls, list[dict[str, Any]]()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.requests.append(asked)
        said = [part for one in asked["messages"] if isinstance(one["content"], list) for part in one["content"]]
        results = [part for part in said if part["type"] == "tool_result"]
        if not asked.get("tools"):
            block, stop = {"type": "text", "text": "A title."}, "end_turn"
        elif len(results) == len(self.calls):
            told = json.dumps([one["content"] for one in results])
            block, stop = {"type": "text", "text": f"I recall: {told}"}, "end_turn"
        else:
            name, given = self.calls[len(results)]
            block, stop = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": name, "input": given}, "tool_use"
        return await self._streamed(request, asked["model"], block, stop)

    async def _streamed(self, request: web.Request, model: str, block: dict[str, Any], stop: str) -> web.StreamResponse:
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        if "input" in block:
            begins, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        else:
            begins, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": begins},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[str]:
        """Its address."""
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/messages", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def ran(claude: Path, home: Path, model: str, *words: str, **more: str) -> str:
    """What the program prints, with a home of its own and no other traffic than to the model, and with `more` in its
    environment."""
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",  # a busy machine may take longer than the two seconds that it waits
        **more,
    }
    process = await asyncio.create_subprocess_exec(
        claude, *words, env=environment, cwd=home, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(LONGEST):
        out, err = await process.communicate()
    assert process.returncode == 0, (out, err)
    return out.decode()


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_it_recalls_and_answers_with_what_it_found(
    claude: Path, database: str, tmp_path: Path, over: str
) -> None:
    model = ScriptedModel((TOOL, {"question": QUESTION}))
    async with (
        hitherto.open(database) as memory,
        serving(memory) as url,
        model.serving() as address,
    ):
        if over == "stdio":
            added = ["--", sys.executable, "-m", "hitherto", "mcp", "--database", database, *OPTIONS]
        else:
            key = (await memory.keys(SCOPE.tenant).create("tests", rights=["read"])).secret
            named = [f"Authorization: Bearer {key}", f"{USER}: {SCOPE.user}", f"{AGENT}: {SCOPE.agent}"]
            headers = [word for one in named for word in ("--header", one)]
            added = ["--transport", "http", f"{url}/mcp", *headers]
        await memory.conversation("keys", scope=SCOPE).append(user("The deploy key is in the blue drawer."))
        await memory.wait_for_index()
        await ran(claude, tmp_path, address, "mcp", "add", "hitherto", *added)
        told = await ran(claude, tmp_path, address, "-p", QUESTION, "--allowedTools", TOOL)
    assert "I recall" in told
    assert "message 0 of conversation keys, user" in told
    assert "The deploy key is in the blue drawer." in told
    offered = {tool["name"] for one in model.requests for tool in one.get("tools", [])}
    assert TOOL in offered, "it is loaded always"
    assert not {name for name in offered if name.startswith("mcp__hitherto__")} - {TOOL}, "the others when searched for"


async def test_its_transcript_is_imported_once(claude: Path, database: str, tmp_path: Path) -> None:
    """With the call of our tool, and without what that gave: it is in the memory already."""
    model = ScriptedModel((TOOL, {"question": QUESTION}))
    async with hitherto.open(database) as memory, model.serving() as address:
        added = [sys.executable, "-m", "hitherto", "mcp", "--database", database, *OPTIONS]
        await memory.conversation("keys", scope=SCOPE).append(user("The deploy key is in the blue drawer."))
        await memory.wait_for_index()
        await ran(claude, tmp_path, address, "mcp", "add", "hitherto", "--", *added)
        await ran(claude, tmp_path, address, "-p", QUESTION, "--allowedTools", TOOL)
        transcripts = tmp_path / ".claude" / "projects"
        assert await import_file(memory, transcripts, scope=SCOPE) == ImportSummary(conversations=1, messages=4)
        assert await import_file(memory, transcripts, scope=SCOPE) == ImportSummary(skipped=1)
        (file,) = transcripts.rglob("*.jsonl")
        asks, calls, result, answers = [
            one.message for one in await memory.conversation(file.stem, scope=SCOPE).messages()
        ]
    assert asks.text == QUESTION
    assert (calls.calls, result.answers) == (("toolu_0",), ("toolu_0",))
    assert "blue drawer" not in result.text
    assert "left out" in result.text
    assert "I recall" in answers.text


def documented() -> list[str]:
    """The command that docs/mcp.md gives, behind the name of the program."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^\| Claude Code \| `claude (.*)` \|$", page, re.MULTILINE)
    return shlex.split(found)


async def test_told_on_monday_it_is_known_on_friday(claude: Path, database: str, tmp_path: Path) -> None:
    """By the one command of the documentation; each is a session, a process and a server of its own."""
    place = {"HITHERTO_DATABASE": database}
    tools = [f"mcp__hitherto__{name}" for name in ("save", "remember")]
    told = "The deploy key is in the blue drawer. And I prefer tabs."
    monday = ScriptedModel(
        ("ToolSearch", {"query": f"select:{','.join(tools)}"}),
        (tools[0], {"conversation": "monday", "messages": [{"role": "user", "content": told}]}),
        (tools[1], {"text": "The user prefers tabs."}),
    )
    async with monday.serving() as address:
        await ran(claude, tmp_path, address, *documented(), **place)
        answer = await ran(claude, tmp_path, address, "-p", told, "--allowedTools", ",".join(tools), **place)
        assert "Remembered as fact" in answer
    friday = ScriptedModel((TOOL, {"question": QUESTION}), (TOOL, {"question": "Does the user prefer tabs?"}))
    async with friday.serving() as address:
        answer = await ran(claude, tmp_path, address, "-p", QUESTION, "--allowedTools", TOOL, **place)
    assert "message 0 of conversation monday, user" in answer
    assert "The deploy key is in the blue drawer." in answer
    assert re.search(r"fact \d+, .{0,40}The user prefers tabs\.", answer)
