"""The commands that read what is stored: `log`, `context`, `digests`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from pydantic import TypeAdapter

import hitherto
from hitherto.cli import shown, terminal
from hitherto.cli.app import (
    AGENT,
    TENANT,
    USER,
    AgentOption,
    BudgetOption,
    DatabaseOption,
    IdArgument,
    JsonOption,
    TenantOption,
    UserOption,
    app,
)
from hitherto.cli.chosen import named
from hitherto.cli.running import Result, run
from hitherto.core.digest import Digest
from hitherto.core.message import CHAT, Logged
from hitherto.core.scope import Scope
from hitherto.engine.conversation import Conversation
from hitherto.errors import NotFound

_MOST = 2**62
"""More messages than any log has, and still a number that every store takes."""

_NAMED = 10
"""How many conversations an error names."""


@app.command()
def log(
    id: IdArgument,
    start: Annotated[int, typer.Option(min=0, max=_MOST, metavar="SEQ", help="The first message to show.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, max=_MOST, metavar="N", help="At most so many messages.")] = None,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Read the log: every message as it was stored.

    Messages that were cleared are there too. Long ones are shortened, but for --json.
    """

    async def read(chat: Conversation, view_start: int) -> tuple[list[Logged], int]:
        return await chat.messages(start=start, limit=limit), view_start

    messages, view_start = _on(id, Scope(tenant=tenant, user=user, agent=agent), database, read)
    if as_json:
        terminal.print_json(
            {"conversation": id, "messages": [_logged_json(one, cleared=one.seq < view_start) for one in messages]}
        )
        return
    out = terminal.out()
    out.print(shown.messages_table(messages, hidden_before=view_start, width=out.width))


@app.command()
def context(
    id: IdArgument,
    budget: BudgetOption = 4_000,
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="What the user says next.")] = None,
    at: Annotated[int | None, typer.Option(min=0, metavar="REV", help="As it was at this revision.")] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Another policy than the conversation's.")
    ] = None,
    wire: Annotated[str, typer.Option(metavar="FORMAT", help="openai.chat, openai.responses or anthropic.")] = CHAT,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Show the context of the next request, and its manifest."""
    chosen = None if policy is None else named(policy)[1]
    incoming = None if message is None else hitherto.user(message)

    async def read(chat: Conversation, _: int) -> hitherto.Context:
        return await chat.context(incoming, budget=budget, at=at, policy=chosen, wire=wire)

    found = _on(id, Scope(tenant=tenant, user=user, agent=agent), database, read)
    if as_json:
        terminal.print_json({"request": found.request, "manifest": found.manifest.to_json()})
        return
    out = terminal.out()
    out.print(shown.context_panel(found))
    out.print(shown.manifest_table(found.manifest))


@app.command()
def digests(
    id: IdArgument,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Show the chain of digests, and the newest in full."""

    async def read(chat: Conversation, view_start: int) -> tuple[list[Digest], int]:
        return await chat.digests(), view_start

    found, view_start = _on(id, Scope(tenant=tenant, user=user, agent=agent), database, read)
    if as_json:
        plain = TypeAdapter(list[Digest]).dump_python(found, mode="json")
        terminal.print_json({"conversation": id, "digests": plain})
        return
    out = terminal.out()
    out.print(shown.digests_table(found, width=out.width))
    out.print(shown.newest_digest(found, view_start=view_start, width=out.width))


def _on(id: str, scope: Scope, database: str | None, verb: Callable[[Conversation, int], Awaitable[Result]]) -> Result:
    """What `verb` gives for an existing conversation and the seq its view starts at."""

    async def look() -> Result:
        async with hitherto.open(database, worker=False) as memory:
            chat = memory.conversation(id, scope=scope)
            head = await chat.head()
            if head is None:
                names = [repr(one.conversation) for one in await memory.conversations(scope, limit=_NAMED + 1)]
                there = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
                raise NotFound(
                    f"there is no conversation {id!r} in scope {scope}; there: {there or 'none (try: hitherto demo)'}"
                )
            return await verb(chat, head.view_start)

    return run(look())


def _logged_json(logged: Logged, *, cleared: bool) -> dict[str, object]:
    message = logged.message
    return {
        "seq": logged.seq,
        "role": message.role.value,
        "kind": message.kind.value,
        "tokens": logged.tokens,
        "created_at": logged.created_at.isoformat(),
        "cleared": cleared,
        "retracted": logged.retracted_rev is not None,
        "erased": logged.erased,
        "wire": message.wire,
        "metadata": json.loads(message.metadata),
        "payload": message.payload,
    }
