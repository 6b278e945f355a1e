"""`hitherto mcp` as a client starts it: a process that speaks over its standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from hitherto import Memory, user
from hitherto.core.key import Right
from hitherto.errors import DatabaseUnavailable
from hitherto.mcp.server import McpAccess, mcp_server
from hitherto.mcp.stdio import LateMemory
from tests.acceptance.cli.commands import bare
from tests.conftest import SCOPE
from tests.http.serving import serving
from tests.importers.test_chatgpt import TRIP
from tests.mcp_server.test_tools import prompt, refused, resource, said
from tests.patience import PATIENCE

OPTIONS = ["--tenant", SCOPE.tenant, "--user", SCOPE.user, "--agent", SCOPE.agent]
ROOT = Path(__file__).parents[2]
READS = {"recall", "read", "conversations", "facts"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def surroundings(**more: str) -> dict[str, str]:
    """The environment without settings of ours, but for `more`."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HITHERTO_")} | more


def command(*options: str, **environment: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "hitherto", "mcp", *options], env=surroundings(**environment)
    )


async def started(*options: str, **environment: str) -> Process:
    given = command(*options, **environment)
    return await asyncio.create_subprocess_exec(
        given.command, *given.args, env=given.env, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def asked(process: Process, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, which is the next line."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    return json.loads(await process.stdout.readline())


async def test_an_agent_finds_what_another_one_saved(database: str) -> None:
    """The first speaks the revision of 2025-11-25, the second that of 2026-07-28."""
    messages = [{"role": "user", "content": "The deploy key is in the blue drawer."}]
    async with asyncio.timeout(PATIENCE), Client(command(*OPTIONS, "--database", database), mode="legacy") as client:
        await said(client, "save", conversation="keys", messages=messages)
    async with (
        asyncio.timeout(PATIENCE),
        Client(command(*OPTIONS, HITHERTO_DATABASE=database), mode="2026-07-28") as client,
    ):
        assert "blue drawer" in await said(client, "recall", question="Where is the deploy key?")
        assert len((await client.list_tools()).tools) == 7


async def test_what_chatgpt_was_told_is_found(database: str, tmp_path: Path) -> None:
    """Its export is imported by one command, and asked by the server as clients start it, both without options."""
    with ZipFile(tmp_path / "EXPORT.zip", "w") as packed:
        packed.writestr("conversations.json", json.dumps([TRIP]))
    place = surroundings(HITHERTO_DATABASE=database)
    words = [sys.executable, "-m", "hitherto", "import", tmp_path / "EXPORT.zip"]
    imported = await asyncio.create_subprocess_exec(*words, env=place, stdout=PIPE)
    told, _ = await imported.communicate()
    assert b"Imported: 1 conversation" in told
    async with asyncio.timeout(PATIENCE), Client(command(HITHERTO_DATABASE=database)) as client:
        found = await said(client, "recall", question="How many days in Lisbon?")
        assert "of conversation conv-1, user, 2023-11-14T" in found
        assert "How many days?" in found
        assert "- 0 user: How many days?" in await said(client, "read", conversation="conv-1")
        assert "- conv-1: Lisbon (2023-11-14, " in await said(client, "conversations")


def starts() -> dict[str, tuple[str, ...]]:
    """The command by which each client starts the server, as docs/mcp.md has it."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    found = dict[str, tuple[str, ...]]()
    for client, told in re.findall(r"^\| ([\w ]+) \| `([^`]*mcp[^`]*)`", page, re.MULTILINE):
        if " -- " in told:
            found[client] = tuple(shlex.split(told.partition(" -- ")[2]))
            continue
        whole = json.loads(told if told.startswith("{") else shlex.split(told)[-1])
        one = whole["mcpServers"]["hitherto"] if "mcpServers" in whole else whole
        found[client] = (one["command"], *one["args"])
    return found


async def test_each_client_starts_it_as_the_documentation_says(database: str) -> None:
    found = starts()
    assert found.keys() == {"Claude Code", "Codex", "VS Code", "Cursor"}
    environment = surroundings(HITHERTO_DATABASE=database, PATH=str(Path(sys.executable).parent))
    for name, *arguments in set(found.values()):
        given = StdioServerParameters(command=name, args=arguments, env=environment)
        async with asyncio.timeout(PATIENCE), Client(given) as client:
            assert await said(client, "facts") == "There are no facts."


async def test_of_a_service_the_tools_are_those_that_the_key_allows(memory: Memory) -> None:
    """The tenant is the key's, and the address may be that of the service or of its tools."""
    await memory.conversation("c", scope=SCOPE).append(user("The deploy key is in the blue drawer."))
    await memory.wait_for_index()
    named = ["--user", SCOPE.user, "--agent", SCOPE.agent]
    async with asyncio.timeout(PATIENCE), serving(memory) as url:
        for options, rights, tools in (
            ([*named, "--url", f"{url}/mcp"], [Right.READ], READS),
            ([*OPTIONS, "--url", url], [Right.READ, Right.WRITE, Right.REVIEW], READS | {"remember", "save", "forget"}),
        ):
            key = (await memory.keys(SCOPE.tenant).create("tests", rights=rights)).secret
            async with Client(command(*options, HITHERTO_KEY=key)) as client:
                assert {one.name for one in (await client.list_tools()).tools} == tools
                assert "blue drawer" in await said(client, "recall", question="Where is the deploy key?")
                assert "There are no facts." in await resource(client, "hitherto://facts")
                assert "blue drawer" in await prompt(client, "catch_up")
                with pytest.raises(MCPError, match="there is no conversation"):
                    await resource(client, "hitherto://conversations/nothing")
                if "forget" in tools:
                    await said(client, "remember", text="The user rows.")
                    number = (await memory.facts(SCOPE).list())[-1].id
                    assert "1 fact and 1 message" in await said(client, "forget", fact=number)
                    assert "there is no fact" in await refused(client, "forget", fact=number)
        for options, other, message in (
            (named, "wrong", b"this key is not known here, or was revoked; it comes from the variable HITHERTO_KEY"),
            ([*named, "--tenant", "globex"], key, b"this key is not of the tenant"),
        ):
            process = await started(*options, "--url", url, HITHERTO_KEY=other)
            out, err = await process.communicate()
            assert (process.returncode, out) == (1, b"")
            assert message in err
    assert [one.conversation for one in (await memory.conversations(SCOPE)).conversations][-1] == "c"


async def test_a_list_of_a_service_takes_no_request_for_each_line(memory: Memory) -> None:
    """The key allows three: one at the beginning, one for the list, and one by which this client asks for the tools."""
    key = (await memory.keys(SCOPE.tenant).create("tests", rights=["read"], requests=3)).secret
    for number in range(25):
        await memory.conversation(f"c{number}", scope=SCOPE).append(user("Hello."))
    async with (
        asyncio.timeout(30),  # more requests would have to wait for the next minute
        serving(memory) as url,
        Client(command(*OPTIONS, "--url", url, HITHERTO_KEY=key)) as client,
    ):
        assert (await said(client, "conversations")).count("- c") == 20


async def test_a_service_that_comes_up_later_is_reached_then(memory: Memory) -> None:
    """Until then, each call says what to do; all tools are listed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with (
        asyncio.timeout(PATIENCE),
        Client(command("--url", f"http://127.0.0.1:{port}")) as client,
    ):
        assert len((await client.list_tools()).tools) == 7
        assert "is `hitherto serve` running?" in await refused(client, "facts")
        with pytest.raises(MCPError, match="is `hitherto serve` running"):
            await client.read_resource("hitherto://facts")
        async with serving(memory, keys=False, port=port):
            assert await said(client, "facts") == "There are no facts."


async def test_it_ends_with_its_client(database: str) -> None:
    """When the client closes its end, and when it is told to stop while the client does not. What is no request before
    that does not end it."""
    async with asyncio.timeout(PATIENCE):
        for stop in (lambda one: one.stdin.close(), lambda one: one.send_signal(signal.SIGTERM)):
            process = await started(*OPTIONS, "--database", database)
            assert process.stdin is not None
            process.stdin.write(b'not json\n\xff\xfe\n{"jsonrpc": "2.0"}\n[]\n')
            while "result" not in (answer := await asked(process, HELLO)):
                pass
            assert answer["result"]["serverInfo"]["name"] == "hitherto"
            stop(process)
            assert await process.wait() in (0, 128 + signal.SIGTERM)
            assert process.stderr is not None
            assert b"Traceback" not in await process.stderr.read()


async def test_what_cannot_be_read_is_answered_and_the_next_request_too() -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
    lone = {"name": "save", "arguments": {"conversation": "c", "messages": [{"role": "user", "content": "\ud800"}]}}
    async with asyncio.timeout(PATIENCE):
        process = await started("--url", "http://127.0.0.1:9")
        assert process.stdin is not None
        process.stdin.write(b"\n")
        assert (await asked(process, HELLO))["id"] == 1
        told = await asked(process, {**call, "params": lone})
        assert (told["id"], "lone surrogate" in told["error"]["message"]) == (2, True)
        assert (await asked(process, {**call, "id": None}))["id"] is None
        assert (await asked(process, {"jsonrpc": "2.0", "id": 3, "method": "ping"}))["result"] == {}
        process.stdin.close()
        assert await process.wait() == 0


def test_nothing_heavy_is_loaded_before_the_tools_are_listed() -> None:
    """Claude Code waits two seconds for them."""
    program = "import sys, hitherto.cli.service.mcp, hitherto.mcp.stdio; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "mcp" in loaded
    assert not {"numpy", "psycopg", "openai", "aiohttp", "hitherto.engine.memory"} & {*loaded}


def test_one_place_at_a_time() -> None:
    ran = bare("mcp", "--url", "http://127.0.0.1:9", "--database", "memory:")
    assert "give one of them" in ran.failed(2)


async def test_a_database_that_comes_up_later_is_reached_then(memory: Memory) -> None:
    """Until then, the tools say what is wrong; they are listed all the same."""
    away = [DatabaseUnavailable("no answer from the database")]

    async def open_memory() -> Memory:
        if away:
            raise away.pop()
        return memory

    late = LateMemory(open_memory)
    server = mcp_server(lambda _: McpAccess(late, [Right.ADMIN], lambda: SCOPE))
    async with Client(server) as client:
        assert len((await client.list_tools()).tools) == 7
        assert await refused(client, "facts") == "no answer from the database"
        assert await said(client, "facts") == "There are no facts."
