"""What the commands print for people. It all fits 80 columns, and a row of numbers one line; who has more gets more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hitherto.cli.rounds import Replayed, Round, repeated
from hitherto.cli.tables import WIDE, Column, cut, fitted, numbers, shortened, table_of
from hitherto.cli.terminal import one_line, plain
from hitherto.core.digest import Digest, Done, Ranges, Status
from hitherto.core.manifest import FactsShown, Fate, Manifest
from hitherto.core.message import Kind, Logged
from hitherto.engine.context import Context

_BAR, _WIDE_BAR = 20, 40
_NONE = "–"


def rounds_table(rounds: Sequence[Round], *, budget: int, width: int) -> Table:
    """Per round, the tokens of the full history beside those of the context."""
    top = max((one.full_tokens for one in rounds), default=1)
    bar = _WIDE_BAR if width >= WIDE else _BAR
    table = table_of(f"Tokens sent per round, of a budget of {budget:,}")
    numbers(table, "round", "full", "context")
    table.add_column(Text.assemble(("█ context ", "green"), ("░ saved", "red")), no_wrap=True, min_width=bar)
    numbers(table, "digest to")
    table.add_column("the user says", ratio=1)
    for number, one in enumerate(rounds, 1):
        table.add_row(
            str(number),
            f"{one.full_tokens:,}",
            f"{one.context_tokens:,}",
            _bar(one, top, bar),
            _or_none(one.digest_end),
            cut(one.asked),
        )
    return table


def _bar(one: Round, top: int, width: int) -> Text:
    """The full history, with the part of it that the context takes in front."""
    whole = max(1, round(width * one.full_tokens / max(top, 1)))
    part = min(whole, max(1, round(width * one.context_tokens / max(top, 1))))
    return Text.assemble(("█" * part, "green"), ("░" * (whole - part), "red"))


def digests_table(digests: Iterable[Digest], *, width: int, title: str = "Digests") -> Table:
    """The chain of versions: every digest with its range and the one it was built on."""
    wide = width >= WIDE
    chain = list(digests)
    lasts = [one.error or (one.items[-1].text if one.items else _NONE) for one in chain]
    states = [Text(_status(one), style=_COLOUR.get(one.status, "")) for one in chain]
    columns = [
        Column(name="id", cells=[str(one.id) for one in chain], right=True),
        Column(name="messages", cells=[_range(one.start, one.end) for one in chain], right=True),
        Column(name="built on", cells=[_or_none(one.base) for one in chain], gives=2, right=True),
        Column(name="status", cells=states, gives=1),
        Column(name="tokens", cells=[f"{one.tokens:,}" for one in chain], gives=3, right=True),
    ]
    if wide:
        columns += [
            Column(name="statements", cells=[str(len(one.items)) for one in chain], gives=4, right=True),
            Column(name="ms", cells=[_or_none(one.generation_time_ms) for one in chain], gives=5, right=True),
            Column(name="model", cells=[cut(one.model or _NONE) for one in chain], gives=6, most=24),
        ]
    columns.append(Column(name="its last statement", cells=[cut(one) for one in lasts], prose=True))
    return fitted(title, columns, width=width)


_COLOUR = {Status.FAILED: "red", Status.PROCESSING: "yellow"}


def _status(digest: Digest) -> str:
    """What there is to say of the row: a clear, a drop and a redaction are done as soon as they are there."""
    derives = digest.done not in (Done.CLEAR, Done.DROP, Done.REDACT)
    return digest.status.value if derives else digest.done.value


def newest_digest(digests: Sequence[Digest], *, view_start: int, width: int) -> RenderableType:
    """The newest digest that was not cleared, statement by statement, each with the messages it rests on."""
    standing = [
        one
        for one in digests
        if one.done in (Done.SUMMARISE, Done.CHUNK)
        and one.status is Status.COMPLETED
        and one.hidden_rev is None
        and one.end >= view_start
    ]
    if not standing:
        return Text("None of them has statements that stand now.")
    newest = max(standing, key=lambda one: (one.end, one.id))
    columns = [
        Column(
            name="rests on", cells=[_ranges(one.sources) for one in newest.items], most=max(width // 3, 1), key=True
        ),
        Column(name="statement", cells=[Text(plain(one.text)) for one in newest.items], prose=True),
    ]
    return fitted(f"Digest {newest.id} in full", columns, width=width)


def messages_table(messages: Iterable[Logged], *, hidden_before: int, width: int) -> Table:
    """The log itself."""
    log = list(messages)
    states = [_hidden(one, hidden_before) for one in log]
    texts = ["expired, and erased" if one.erased else shortened(one.message.text) for one in log]
    roles = [one.message.role if one.message.kind is Kind.TEXT else one.message.kind for one in log]
    columns = [
        Column(name="seq", cells=[str(one.seq) for one in log], right=True),
        Column(name="role", cells=[role.value for role in roles], gives=1),
        Column(name="tokens", cells=[f"{one.tokens:,}" for one in log], gives=2, right=True),
        Column(
            name="text", cells=[Text(f"{state}{text}") for state, text in zip(states, texts, strict=True)], prose=True
        ),
    ]
    if width >= WIDE:
        times = [f"{one.created_at:%Y-%m-%d %H:%M:%S}" for one in log]
        columns.insert(2, Column(name="when (UTC)", cells=times, gives=3))
    styles = ["dim" if state or one.erased else "" for state, one in zip(states, log, strict=True)]
    return fitted(None, columns, width=width, styles=styles)


def _hidden(logged: Logged, hidden_before: int) -> str:
    if logged.retracted_rev is not None:
        return "(taken back) "
    return "(cleared) " if logged.seq < hidden_before else ""


def context_panel(context: Context, *, title: str = "The context") -> Panel:
    """The request as it is sent."""
    first = [(name, _said(context.request[name])) for name in ("instructions", "system") if name in context.request]
    items = [(str(item.get("role", item.get("type", "item"))), _item(item)) for item in context.messages]
    parts = [
        Text.assemble((f"{plain(who)}: ", "bold cyan" if who == "user" else "bold"), plain(said))
        for who, said in [*first, *items]
    ]
    tokens = f"{title}: {context.tokens:,} of {context.manifest.budget:,} tokens"
    return Panel(Group(*parts), title=Text(tokens), title_align="left")


def _item(item: dict[str, Any]) -> str:
    rest = {key: value for key, value in item.items() if key not in ("role", "content") and value is not None}
    said = [_said(item["content"])] if item.get("content") is not None else []
    return "\n".join([*said, *([_said(rest)] if rest else [])])


def _said(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def manifest_table(manifest: Manifest) -> Group:
    """The receipt of a context: the fate of every message, and what each section costs."""
    table = table_of("Its manifest: what became of every message")
    numbers(table, "messages")
    for name in ("fate", "why"):
        table.add_column(name, no_wrap=True)
    numbers(table, "digest", "tokens")
    for span in manifest.fates:
        table.add_row(
            _range(span.start, span.end),
            Text(span.fate.value, style=_FATE.get(span.fate, "")),
            span.reason.value,
            _or_none(span.digest),
            f"{span.tokens:,}" if span.fate in (Fate.IN, Fate.REDACTED) else _NONE,
        )
    sections = " + ".join(f"{name} {tokens:,}" for name, tokens in manifest.sections.items() if tokens)
    counted = f"{plain(manifest.encoding)}, {'exact' if manifest.exact else 'an estimate'}"
    total = Text(f"{sections} = {manifest.total:,} tokens ({counted}), at revision {manifest.rev}")
    return Group(table, Text(), total, _governed(manifest))


def _governed(manifest: Manifest) -> Text:
    """Which policy counted and whose it was, and what else a reader would want to know."""
    whose = {"none": "nobody set another", "memory": "the default of this memory"}
    said = whose.get(manifest.policy_from, f"the {manifest.policy_from}'s")
    lines = [f"Policy {plain(str(manifest.policy['name']))} ({said})"]
    if manifest.injected is not None:
        lines.append(f"Memory of {plain(manifest.injected.conversation)}, digest {manifest.injected.digest}")
    if manifest.facts is not None:
        lines.append(_known(manifest.facts))
    if manifest.missing:
        lines.append(f"Missing: {', '.join(manifest.missing)}")
    return Text("\n".join(lines))


def _known(facts: FactsShown) -> str:
    shown, whom = len(facts.shown), plain(facts.name)
    known = "the one fact" if facts.known == 1 else f"the {facts.known:,} facts"
    if not shown:
        return f"None of {known} about {whom}: there is no room"
    count = f"{shown:,} of {known}"
    if shown == facts.known:
        count = "The one fact" if shown == 1 else f"All {shown:,} facts"
    where = "at the end of the instructions" if facts.place == "system" else "before the incoming message"
    return f"{count} about {whom}, {where}"


_FATE = {Fate.IN: "green", Fate.DIGESTED: "yellow", Fate.REDACTED: "yellow", Fate.DROPPED: "red"}


def replays_table(found: Sequence[Replayed], *, width: int) -> Table:
    """One line a replayed conversation, and one for all."""
    wide = width >= WIDE
    table = table_of(None, footer=len(found) > 1)
    table.add_column("id", "all", ratio=1)
    columns = [
        ("messages", [one.messages for one in found], sum),
        ("rounds", [len(one.rounds) for one in found], sum),
        ("full", [one.full_tokens for one in found], sum),
        ("context", [one.context_tokens for one in found], sum),
        ("largest", [one.max_context_tokens for one in found], max),
        ("digests", [len(one.digests) for one in found], sum),
    ]
    if wide:
        columns += [
            ("failed", [len(one.failed) for one in found], sum),
            ("over budget", [one.over_budget for one in found], sum),
            ("gaps", [one.gaps for one in found], sum),
            ("overlaps", [one.overlaps for one in found], sum),
        ]
    for name, values, over_all in columns:
        table.add_column(name, f"{over_all(values):,}", justify="right", no_wrap=True)
    table.add_column("share", _share(found), justify="right", no_wrap=True)
    table.add_column("repeated", f"{repeated(found):.1%}", justify="right", no_wrap=True)
    for at, one in enumerate(found):
        counts = [f"{values[at]:,}" for _, values, _ in columns]
        table.add_row(cut(one.id), *counts, _share([one]), f"{repeated([one]):.1%}")
    return table


def outcome(found: Sequence[Replayed]) -> str:
    """What the replays found, in words."""
    messages, rounds = sum(one.messages for one in found), sum(len(one.rounds) for one in found)
    full, context = sum(one.full_tokens for one in found), sum(one.context_tokens for one in found)
    digests = sum(len(one.digests) for one in found)
    made = failures(found) if any(one.failed for one in found) else f"None of {digests:,} digests failed."
    return (
        f"{messages:,} messages in {rounds:,} rounds: {full:,} tokens with the full history each time, {context:,} "
        f"with the memory ({_share(found)}). Contexts over budget: {sum(one.over_budget for one in found)}; messages "
        f"without a fate: {sum(one.gaps for one in found)}, with two: {sum(one.overlaps for one in found)}. {made}"
    )


def failures(found: Sequence[Replayed]) -> str:
    """How many digests failed, and why the first did."""
    failed = [digest for one in found for digest in one.failed]
    of = sum(len(one.digests) for one in found)
    first = min(failed, key=lambda digest: digest.id)
    return (
        f"{len(failed):,} of {of:,} digests failed, and the contexts went on without them; the first failed with "
        f"{one_line(first.error or 'no reason given')}"
    )


def _share(found: Sequence[Replayed]) -> str:
    full = sum(one.full_tokens for one in found)
    return f"{sum(one.context_tokens for one in found) / full:.1%}" if full else _NONE


def _range(start: int, end: int) -> str:
    return f"{start}–{end}"


def _ranges(ranges: Ranges) -> str:
    return ", ".join(str(first) if first == last else _range(first, last) for first, last in ranges)


def _or_none(value: int | None) -> str:
    return _NONE if value is None else str(value)
