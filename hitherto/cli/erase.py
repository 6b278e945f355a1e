"""`hitherto erase`: messages, a user or a tenant, with everything made from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.app import group
from hitherto.cli.memory import existing, with_memory
from hitherto.cli.options import LOCAL_TENANT, Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import shortened
from hitherto.core.log.ranges import Ranges, joined
from hitherto.errors import InvalidInput

if TYPE_CHECKING:
    from hitherto.engine.conversation import Conversation
    from hitherto.engine.log.erase_scope import ErasureReport
    from hitherto.engine.memory import Memory

_SHOWN = 10
"""How many of the messages are shown before the question."""

_NUMBER = re.compile("[0-9]{1,18}")

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking.")]


def messages(
    id: options.Conversation,
    seqs: Annotated[
        list[str], typer.Argument(metavar="SEQ...", help="Numbers of messages, ranges such as 4-7, or their own ids.")
    ],
    yes: Yes = False,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Erase messages of a conversation, and everything that rests on them."""

    async def look(memory: Memory) -> Ranges:
        conversation, head = await existing(memory, id, target.scope)
        asked = await _ranges(conversation, seqs)
        if asked[-1][1] > head.last_seq:
            raise InvalidInput(f"{id!r} has no message {asked[-1][1]}: its log ends with {head.last_seq}")
        if not yes:
            await _show(conversation, asked)
        return asked

    async def work(memory: Memory) -> int:
        conversation = memory.conversation(id, scope=target.scope)
        erased = await conversation.erase(seq for first, last in asked for seq in range(first, last + 1))
        await memory.wait_for_erasure()
        return erased

    asked = with_memory(target.database, look)
    _ask(f"Erase {output.told({'messages': _count(asked)})} of {id!r}, and everything that rests on them?", yes=yes)
    erased = with_memory(target.database, work, read_only=False)
    _report({"messages": erased}, as_json=as_json)


def user(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user.")],
    tenant: options.Tenant = LOCAL_TENANT,
    yes: Yes = False,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Erase everything of a user, with all agents."""
    _erase(tenant, name, yes=yes, database=database, as_json=as_json)


def tenant(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tenant.")],
    yes: Yes = False,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Erase everything of a tenant, with all users and agents."""
    _erase(name, None, yes=yes, database=database, as_json=as_json)


def subject(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The subject.")],
    tenant: options.Tenant = LOCAL_TENANT,
    yes: Yes = False,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Erase everything about a subject: its facts, and the conversations about it."""

    async def work(memory: Memory) -> ErasureReport:
        erased = await memory.erase_subject(tenant, name)
        await memory.wait_for_erasure()
        return erased

    kept = output.fields_of(with_memory(database, lambda memory: memory.kept_about(tenant, name)))
    _ask(f"Erase everything about the subject {name} of the tenant {tenant}: {output.told(kept)}?", yes=yes)
    erased = with_memory(database, work, read_only=False)
    _report(output.fields_of(erased), as_json=as_json)


erase = group("erase", {"messages": messages, "user": user, "tenant": tenant, "subject": subject})


def _erase(tenant: str, user: str | None, *, yes: bool, database: str | None, as_json: bool) -> None:
    whose = f"the tenant {tenant}" if user is None else f"the user {user} of the tenant {tenant}"

    async def work(memory: Memory) -> ErasureReport:
        erased = await (memory.erase_tenant(tenant) if user is None else memory.erase_user(tenant, user))
        await memory.wait_for_erasure()
        return erased

    kept = with_memory(database, lambda memory: _kept(memory, tenant, user))
    _ask(f"Erase everything of {whose}: {output.told(kept)}?", yes=yes)
    erased = with_memory(database, work, read_only=False)
    _report(output.fields_of(erased), as_json=as_json)


_COUNTED = ("conversations", "messages", "documents", "facts")


async def _kept(memory: Memory, tenant: str, user: str | None) -> dict[str, int]:
    """How much is kept of a tenant, or of a user of it."""
    page = await memory.scopes("tenant" if user is None else "user", tenant=tenant, user=user)
    return {name: sum(getattr(one, name) for one in page.scopes) for name in _COUNTED}


async def _show(conversation: Conversation, asked: Ranges) -> None:
    """The first of the messages, as one line each, on standard error."""
    left, count = _SHOWN, _count(asked)
    for first, last in asked:
        for one in await conversation.messages(start=first, stop=last + 1, limit=left):
            text = "(erased)" if one.erased else shortened(one.message.text)
            output.err().print(Text(output.one_line(f"{one.seq} {one.message.role.value}: {text}")), soft_wrap=True)
            left -= 1
        if not left:
            break
    if count > _SHOWN:
        output.err().print(f"… and {count - _SHOWN:,} more")


def _ask(question: str, *, yes: bool) -> None:
    """Go on if the answer is yes. Raises InvalidInput where nobody can answer, and ends the command on a no."""
    if yes:
        return
    if not output.err().is_terminal:
        raise InvalidInput(f"{question} Nobody can answer here; say it with --yes")
    if not typer.confirm(output.one_line(question), err=True):
        output.say("Nothing was erased.")
        raise typer.Exit(1)


def _report(counts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json({"erased": counts})
    else:
        output.say(f"Erased: {output.told(counts)}.")


def _count(asked: Ranges) -> int:
    return sum(last - first + 1 for first, last in asked)


async def _ranges(conversation: Conversation, given: Iterable[str]) -> Ranges:
    """The ranges, ascending. What is neither a number nor a range is a message's own id. Raises InvalidInput."""
    found: list[tuple[int, int]] = []
    for one in given:
        first, dash, last = one.partition("-")
        last = last if dash else first
        if _NUMBER.fullmatch(first) and _NUMBER.fullmatch(last) and int(first) <= int(last):
            found.append((int(first), int(last)))
        elif (named := await conversation.get(one)) is not None:
            found.append((named.seq, named.seq))
        else:
            raise InvalidInput(
                f"{one!r} is no number of a message, no range of them, and no message's own id; write it as 4 or 4-7"
            )
    return joined(found)
