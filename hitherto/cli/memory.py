"""Running a command's work on an open memory."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import hitherto
from hitherto.errors import InvalidInput, NotFound, StoreError
from hitherto.settings import Settings

if TYPE_CHECKING:
    from hitherto.cli.options import Target
    from hitherto.core.log.head import Head
    from hitherto.core.scope import Scope
    from hitherto.engine.conversation import Conversation
    from hitherto.engine.memory import Memory

Result = TypeVar("Result")

WAIT_FOR_DIGESTS: dict[str, Any] = {
    "worker": True,
    "digest_max_attempts": 1,
    "backoff": 0,
    "breaker_failures": 1_000_000,
}
"""Settings of a memory whose digests are made here and each waited for. A digest is tried once: one that was put off
would be missing in the rounds that follow."""

_LISTED = 10
"""How many conversations an error lists."""


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run`, but SIGTERM and SIGHUP cancel as Ctrl-C does, so that everything open is closed, and a server that
    this process started is stopped. Raises SystemExit then, with 128 + the signal's number."""
    received: list[int] = []

    async def main() -> Result:
        task = asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            received.append(number)
            task.cancel()

        if sys.platform != "win32":
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:  # under `nohup`, SIGHUP stays ignored
                    asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise SystemExit(128 + received[0]) from None


def with_memory(database: str | None, use: Callable[[Memory], Awaitable[Result]], *, read_only: bool = True) -> Result:
    """What `use` returns for an open memory that makes no digests. What only reads creates nothing; what writes does so
    unless the setting `read_only` forbids it. Raises InvalidInput for `memory:`."""
    lasting(database)

    async def work() -> Result:
        async with hitherto.open(database, worker=False, read_only=read_only or None) as memory:
            return await use(memory)

    return run(work())


def with_conversation(
    target: Target, id: str, use: Callable[[Conversation], Awaitable[Result]], *, read_only: bool = True
) -> tuple[Result, int]:
    """What `use` returns for an existing conversation, and the seq at which its view starts. Raises NotFound."""

    async def work(memory: Memory) -> tuple[Result, int]:
        conversation, head = await existing(memory, id, target.scope)
        return await use(conversation), head.view_start

    return with_memory(target.database, work, read_only=read_only)


def lasting(database: str | None) -> Settings:
    """The settings. Raises InvalidInput for `memory:`, of which a command finds nothing and leaves nothing."""
    from hitherto.wiring import IN_MEMORY  # not while a coding agent waits for its tools

    settings = Settings.load(database=database)
    if settings.database == IN_MEMORY:
        raise InvalidInput(
            "memory: is empty when this command begins, and gone when it ends; name a PostgreSQL server, or leave "
            "--database out for Hitherto's own"
        )
    return settings


async def existing(memory: Memory, id: str, scope: Scope) -> tuple[Conversation, Head]:
    """The conversation, and its state. Raises NotFound."""
    conversation = memory.conversation(id, scope=scope)
    head = await conversation.head()
    if head is not None:
        return conversation, head
    page = await memory.conversations(scope, limit=_LISTED)
    found = ", ".join(repr(one.conversation) for one in page.conversations) + (", …" if page.next else "")
    raise NotFound(
        f"there is no conversation {id!r} in scope {scope}; there: {found or await _elsewhere(memory, scope)}"
    )


async def _elsewhere(memory: Memory, scope: Scope) -> str:
    """Where conversations are, if none is in the scope; no other tenant, user or agent is named."""
    if (await memory.conversations(tenant=scope.tenant, limit=1)).conversations:
        return (
            "none, but other users or agents of the tenant have some: name them with --user and --agent "
            "(hitherto scopes --tenant NAME lists them)"
        )
    with suppress(StoreError):  # a role that sees one tenant at a time
        if (await memory.scopes("tenant", limit=1)).scopes:
            return "none, but another tenant has some: name it with --tenant (hitherto scopes lists them)"
    return "none (try: hitherto demo)"


async def check_filter(memory: Memory, conversation: str, scope: Scope) -> None:
    """Raises NotFound if the conversation that a search is limited to does not exist."""
    if await memory.conversation(conversation, scope=scope).head() is None:
        raise NotFound(f"there is no conversation {conversation!r} in scope {scope}; leave --conversation out for all")
