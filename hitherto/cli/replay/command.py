"""The command `replay`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

import hitherto
from hitherto import tokens
from hitherto.cli import options
from hitherto.cli.memory import WAIT_FOR_DIGESTS, run
from hitherto.cli.options import Target
from hitherto.cli.policies import parse_policy
from hitherto.cli.replay.run import Replayed, Sent, repeated, replay_all
from hitherto.cli.terminal import output
from hitherto.cli.terminal.output import one_line
from hitherto.cli.terminal.tables import NONE, cut, numbers, or_none, table_of, wide
from hitherto.cli.transcripts.transcript import FileConversation, load
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import PRESETS
from hitherto.settings import Settings
from hitherto.simulation.run import steps

_BAR, _WIDE_BAR = 20, 40


def requests_table(sent: Sequence[Sent], *, budget: int) -> Table:
    """Per request, the tokens of the full history beside those of the context."""
    most = max((request.full_tokens for request in sent), default=1)
    bar = _WIDE_BAR if wide() else _BAR
    table = table_of(f"Tokens of each request, of a budget of {budget:,}")
    numbers(table, "request", "full", "context")
    table.add_column(Text.assemble(("█ context ", "green"), ("░ saved", "red")), no_wrap=True, min_width=bar)
    numbers(table, "digest to")
    table.add_column("what came in", ratio=1)
    for number, request in enumerate(sent, 1):
        table.add_row(
            str(number),
            f"{request.full_tokens:,}",
            f"{request.context_tokens:,}",
            _bar(request, most, bar),
            or_none(request.digest_end),
            cut(request.text),
        )
    return table


def _bar(request: Sent, most: int, width: int) -> Text:
    """The full history, and in front the part of it that the context takes."""
    full = max(1, round(width * request.full_tokens / max(most, 1)))
    context = min(full, max(1, round(width * request.context_tokens / max(most, 1))))
    return Text.assemble(("█" * context, "green"), ("░" * (full - context), "red"))


def replays_table(found: Sequence[Replayed]) -> Table:
    """A row for each replayed conversation, and one for all."""
    table = table_of(None, footer=len(found) > 1)
    table.add_column("id", "all", ratio=1)
    columns = [
        ("messages", [replayed.messages for replayed in found], sum),
        ("requests", [len(replayed.sent) for replayed in found], sum),
        ("full", [replayed.full_tokens for replayed in found], sum),
        ("context", [replayed.context_tokens for replayed in found], sum),
        ("largest", [replayed.max_context_tokens for replayed in found], max),
        ("digests", [len(replayed.digests) for replayed in found], sum),
    ]
    if wide():
        columns += [
            ("failed", [len(replayed.failed) for replayed in found], sum),
            ("over budget", [replayed.over_budget for replayed in found], sum),
            ("gaps", [replayed.gaps for replayed in found], sum),
            ("overlaps", [replayed.overlaps for replayed in found], sum),
        ]
    for name, values, total in columns:
        table.add_column(name, f"{total(values):,}", justify="right", no_wrap=True)
    table.add_column("share", _share(found), justify="right", no_wrap=True)
    table.add_column("repeated", f"{repeated(found):.1%}", justify="right", no_wrap=True)
    for at, replayed in enumerate(found):
        counts = [f"{values[at]:,}" for _, values, _ in columns]
        table.add_row(cut(replayed.id), *counts, _share([replayed]), f"{repeated([replayed]):.1%}")
    return table


def summary(found: Sequence[Replayed]) -> str:
    """What the replays found, in words."""
    messages, requests = sum(replayed.messages for replayed in found), sum(len(replayed.sent) for replayed in found)
    full, context = sum(replayed.full_tokens for replayed in found), sum(replayed.context_tokens for replayed in found)
    over, gaps = sum(replayed.over_budget for replayed in found), sum(replayed.gaps for replayed in found)
    digests, overlaps = sum(len(replayed.digests) for replayed in found), sum(replayed.overlaps for replayed in found)
    outcome = f"None of {digests:,} digests failed." if digests else "No digest was made."
    if any(replayed.failed for replayed in found):
        outcome = failures(found)
    return (
        f"{messages:,} messages in {requests:,} requests: {full:,} tokens with the full history each time, {context:,} "
        f"with the memory ({_share(found)}), of which {repeated(found):.0%} repeat the request before. "
        f"Contexts over budget: {over}; messages without a fate: {gaps}, with two: "
        f"{overlaps}. {outcome}"
    )


def failures(found: Sequence[Replayed]) -> str:
    """How many digests failed, and why the first did."""
    failed = [digest for replayed in found for digest in replayed.failed]
    total = sum(len(replayed.digests) for replayed in found)
    first = min(failed, key=lambda digest: digest.id)
    return (
        f"{len(failed):,} of {total:,} digests failed, and the contexts went on without them; the first failed with "
        f"{one_line(first.error or 'no reason given')}"
    )


def _share(found: Sequence[Replayed]) -> str:
    full = sum(replayed.full_tokens for replayed in found)
    return f"{sum(replayed.context_tokens for replayed in found) / full:.1%}" if full else NONE


def replay(
    file: options.TranscriptFile,
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help=f"{', '.join(PRESETS)}, name:parameter=value,…, or a .json file.")
    ] = "balanced",
    budget: options.Budget = 4_000,
    conversation: options.SampleId = None,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Replay a transcript, and say what it would have cost.

    Takes a context for each request, appends and digests, as an agent does. The conversation is kept under the
    transcript's name. An earlier replay of that name is replaced.
    """
    _, chosen = parse_policy(policy)
    transcripts = load(file, conversation=conversation)
    begun = time.monotonic()
    found = run_replay(transcripts, target, policy=chosen, budget=budget)
    seconds = time.monotonic() - begun
    if as_json:
        conversations = [replayed.to_json() for replayed in found]
        output.print_json(
            {"conversations": conversations, "repeated": round(repeated(found), 6), "seconds": round(seconds, 3)}
        )
        if any(replayed.failed for replayed in found):
            output.warn(failures(found))
        return
    output.show(replays_table(found), "", summary(found))
    output.say(f"Policy {policy}, budget {budget:,} tokens; it took {seconds:.1f} s.")


def run_replay(
    transcripts: Sequence[FileConversation], target: Target, *, policy: Policy, budget: int, question: str | None = None
) -> list[Replayed]:
    """Replay transcripts into the target, with a progress bar, and ask each the `question` in the end."""
    settings = Settings.load(database=target.database)
    requests = sum(bool(step.asked) for transcript in transcripts for step in steps(transcript.messages))
    name = transcripts[0].id if len(transcripts) == 1 else f"{len(transcripts)} conversations"

    async def work() -> list[Replayed]:
        with output.progress() as progress:
            bar = progress.add_task("opening the database", total=requests)
            async with hitherto.open(
                settings.database,
                budget=budget,
                context_window=settings.context_window or budget,
                **WAIT_FOR_DIGESTS,
            ) as memory:
                progress.update(bar, description=f"replaying {output.one_line(name)[:30]}")
                return await replay_all(
                    memory,
                    transcripts,
                    scope=target.scope,
                    policy=policy,
                    budget=budget,
                    counter=tokens.counter_for(settings.encoding),
                    question=question,
                    advance=lambda: progress.advance(bar),
                )

    return run(work())
