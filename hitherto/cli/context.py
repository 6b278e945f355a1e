"""`hitherto context`: the context of the next request, and its manifest."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Group
from rich.panel import Panel
from rich.text import Text

import hitherto
from hitherto.cli import options
from hitherto.cli.memory import existing, with_conversation, with_memory
from hitherto.cli.options import Target
from hitherto.cli.policies import parse_policy
from hitherto.cli.terminal import output
from hitherto.cli.terminal.output import plain
from hitherto.cli.terminal.tables import NONE, numbers, or_none, seq_range, table_of
from hitherto.core.context.manifest import FactsShown, Manifest, changes_since
from hitherto.core.log.message import CHAT, Wire
from hitherto.core.plain_text import without_data
from hitherto.core.policy.span import Fate
from hitherto.errors import InvalidInput, NotFound, NotReproducible

if TYPE_CHECKING:
    from hitherto.core.context.manifest import KeptContext
    from hitherto.engine.context.context import Context
    from hitherto.engine.memory import Memory

_BUDGET = 4_000

_COLORS = {
    Fate.IN: "green",
    Fate.RECALLED: "green",
    Fate.DIGESTED: "yellow",
    Fate.REDACTED: "yellow",
    Fate.DROPPED: "red",
}
_ORIGINS = {"default": "nobody set another", "memory": "the default of this memory"}


def context(
    id: options.Conversation,
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="TOKENS", help="Tokens that one request may take. [default: 4000]")
    ] = None,
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="The user's next message.")] = None,
    at: Annotated[int | None, typer.Option(min=0, metavar="REV", help="As it was at this revision.")] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Use this policy instead of the conversation's.")
    ] = None,
    wire: Annotated[str, typer.Option(metavar="FORMAT", help="openai.chat, openai.responses or anthropic.")] = CHAT,
    last: Annotated[bool, typer.Option("--last", help="The newest context that was kept: what the model saw.")] = False,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Show the context of the next request, or the last one kept, and its manifest."""
    if last:
        if (budget, message, at, policy, wire) != (None, None, None, None, CHAT):
            raise InvalidInput("--last shows a context as it was; leave the other options out")
        _show_last(target, id, as_json=as_json)
        return
    other = None if policy is None else parse_policy(policy)[1]
    incoming = None if message is None else hitherto.user(message)
    found, _ = with_conversation(
        target,
        id,
        lambda conversation: conversation.context(
            incoming, budget=budget or _BUDGET, at=at, policy=other, wire=cast(Wire, wire)
        ),
    )
    if as_json:
        output.print_json({"request": found.request, "manifest": found.manifest.to_json()})
    else:
        output.show(*context_and_manifest(found))


def _show_last(target: Target, id: str, *, as_json: bool) -> None:
    """The newest kept context, and what is different in it from the one before."""

    async def work(memory: Memory) -> tuple[list[KeptContext], Context | None, str]:
        conversation = memory.conversation(id, scope=target.scope)
        kept = await conversation.contexts(limit=2)
        if not kept:
            await existing(memory, id, target.scope)
            raise NotFound(
                f"no context of {id!r} is kept; set HITHERTO_KEEP_CONTEXTS, or HITHERTO_KEEP_CONTEXTS_FOR, where "
                "contexts are made"
            )
        try:
            return kept, await conversation.rebuild(kept[0].manifest), ""
        except NotReproducible as error:
            return kept, None, str(error)

    kept, found, why = with_memory(target.database, work)
    newest, *before = kept
    changes = None if not before else changes_since(before[0].manifest, newest.manifest)
    if as_json:
        output.print_json(
            {
                "id": newest.id,
                "kept_at": newest.kept_at.isoformat(),
                "request": None if found is None else found.request,
                "manifest": newest.manifest.to_json(),
                "changes": None if changes is None else asdict(changes),
            }
        )
        return
    output.say(f"Context {newest.id}, kept at {newest.kept_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC.")
    if found is None:
        output.warn(why)
        output.show(manifest_tables(newest.manifest))
    else:
        output.show(*context_and_manifest(found))
    if changes is not None:
        output.say(
            f"Since the one before: {changes.added:,} messages added, {changes.removed:,} removed, "
            f"{changes.recalled:,} recalled, {changes.tokens:+,} tokens."
        )


def context_and_manifest(found: Context) -> tuple[Panel, Group]:
    """The request as it is sent, without data such as a picture's base64, and its manifest."""
    fields = [(name, _text(found.request[name])) for name in ("instructions", "system") if name in found.request]
    items = [(str(item.get("role", item.get("type", "item"))), _item_text(item)) for item in found.messages]
    parts = [
        Text.assemble((f"{plain(name)}: ", "bold cyan" if name == "user" else "bold"), plain(without_data(text)))
        for name, text in [*fields, *items]
    ]
    title = f"The context: {found.tokens:,} of {found.manifest.budget:,} tokens"
    return Panel(Group(*parts), title=Text(title), title_align="left"), manifest_tables(found.manifest)


def _item_text(item: dict[str, Any]) -> str:
    rest = {key: value for key, value in item.items() if key not in ("role", "content") and value is not None}
    content = [_text(item["content"])] if item.get("content") is not None else []
    return "\n".join([*content, *([_text(rest)] if rest else [])])


def _text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def manifest_tables(manifest: Manifest) -> Group:
    """The manifest: the fates of the messages, the sections, and remarks."""
    table = table_of("Its manifest: what became of every message")
    numbers(table, "messages")
    for name in ("fate", "why"):
        table.add_column(name, no_wrap=True)
    numbers(table, "digest", "tokens")
    for span in manifest.fates:
        table.add_row(
            seq_range(span.start, span.end),
            Text(span.fate.value, style=_COLORS.get(span.fate, "")),
            span.reason.value,
            or_none(span.digest),
            f"{span.tokens:,}" if span.fate in (Fate.IN, Fate.REDACTED, Fate.RECALLED) else NONE,
        )
    sections = " + ".join(f"{name} {tokens:,}" for name, tokens in manifest.sections.items() if tokens)
    counted = f"{plain(manifest.encoding)}, {'exact' if manifest.exact else 'an estimate'}"
    total = Text(f"{sections} = {manifest.total:,} tokens ({counted}), at revision {manifest.rev}")
    return Group(table, Text(), total, Text("\n".join(_remarks(manifest))))


def _remarks(manifest: Manifest) -> list[str]:
    """Which policy applies and where it is set, what was injected, the facts, and what is missing."""
    origin = _ORIGINS.get(manifest.policy_from, f"the {manifest.policy_from}'s")
    lines = [f"Policy {plain(str(manifest.policy['name']))} ({origin})"]
    if manifest.injected is not None:
        lines.append(f"Memory of {plain(manifest.injected.conversation)}, digest {manifest.injected.digest}")
    if manifest.facts is not None:
        lines.append(_facts(manifest.facts))
    if manifest.missing:
        lines.append(f"Missing: {', '.join(manifest.missing)}")
    return lines


def _facts(facts: FactsShown) -> str:
    newer, subject = len(facts.newer), plain(facts.name)
    shown = len(facts.shown) + newer
    known = "the one fact" if facts.known == 1 else f"the {facts.known:,} facts"
    if not shown:
        return f"None of {known} about {subject}: there is no room"
    count = f"{shown:,} of {known}"
    if shown == facts.known:
        count = "The one fact" if shown == 1 else f"All {shown:,} facts"
    place = "at the end of the instructions" if facts.place == "system" else "before the incoming message"
    return f"{count} about {subject}, {place}" + (
        f", the newest {newer:,} before the incoming message" if newer else ""
    )
