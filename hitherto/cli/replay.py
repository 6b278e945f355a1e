"""The commands that replay transcripts: `demo`, `replay`."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import hitherto
from hitherto import tokens
from hitherto.cli import shown, terminal
from hitherto.cli.app import (
    AGENT,
    DEFAULT_SCOPE,
    TENANT,
    USER,
    AgentOption,
    BudgetOption,
    DatabaseOption,
    JsonOption,
    TenantOption,
    UserOption,
    app,
)
from hitherto.cli.chosen import known_policies, named
from hitherto.cli.rounds import Replayed, repeated, replay
from hitherto.cli.running import WAITED_FOR, run
from hitherto.cli.transcript import Transcript, load, parse
from hitherto.core.policy import Policy
from hitherto.core.scope import Scope
from hitherto.settings import Settings
from hitherto.wiring import IN_MEMORY

_DEMO = "demo"


@app.command()
def demo(
    budget: BudgetOption = 2_000,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
) -> None:
    """Replay a conversation that ships with Hitherto.

    Shows what the memory makes of it, round by round. Needs no key and no network; with HITHERTO_MODEL set, that model
    makes the digests.
    """
    source = resources.files("hitherto").joinpath("data/demo.jsonl").read_bytes()
    scope, settings = Scope(tenant=tenant, user=user, agent=agent), Settings.load(database=database)
    transcripts = parse(source, Path(_DEMO))
    policy = hitherto.sliding_window()
    (found,), _ = run(_replayed(transcripts, settings, scope=scope, policy=policy, budget=budget))
    out = terminal.out()
    out.print(shown.rounds_table(found.rounds, budget=budget, width=out.width))
    out.print()
    out.print(shown.digests_table(found.digests, width=out.width, title=f"The digests, made by {settings.model}"))
    out.print()
    if found.last is not None:
        out.print(shown.context_panel(found.last, title="The last context"))
        out.print(shown.manifest_table(found.last.manifest))
    out.print()
    out.print(shown.outcome([found]))
    out.print()
    out.print(_what_next(scope, database, kept=settings.database != IN_MEMORY), soft_wrap=True)


def _what_next(scope: Scope, database: str | None, *, kept: bool) -> str:
    tries = [
        ("your own conversation, one message a line", "hitherto replay YOURS.jsonl"),
        ("digests by a model", "HITHERTO_MODEL=gpt-4.1-mini HITHERTO_MODEL_KEY=… hitherto demo"),
    ]
    if kept:
        # The address may have a password in it.
        options = "" if database is None else " --database …"
        for name, default in DEFAULT_SCOPE.items():
            if (value := getattr(scope, name)) != default:
                options += f" --{name} {terminal.one_line(shlex.quote(value))}"
        tries = [
            ("every message is still there", f"hitherto log {_DEMO}{options}"),
            ("the newest digest, with its sources", f"hitherto digests {_DEMO}{options}"),
            ("the context of the next request", f"hitherto context {_DEMO}{options} --message 'Who speaks?'"),
            *tries,
        ]
    return "\n".join(["What to try next:", *(f"  {why + ':':42} {command}" for why, command in tries)])


@app.command(name="replay")
def replay_command(
    file: Annotated[Path, typer.Argument(help="JSON lines in OpenAI chat shape, or a LoCoMo file.", metavar="FILE")],
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help=f"{known_policies()}, name:parameter=value,…, or a .json file.")
    ] = "sliding-window",
    budget: BudgetOption = 4_000,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Of a LoCoMo file, only this sample_id.")
    ] = None,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Replay a transcript, and say what it would have cost.

    Takes a context, appends and digests, round by round. The conversation is kept under the transcript's name; a
    replay of the same name before it is replaced.
    """
    _, chosen = named(policy)
    transcripts = load(file, conversation=conversation)
    scope, settings = Scope(tenant=tenant, user=user, agent=agent), Settings.load(database=database)
    found, seconds = run(_replayed(transcripts, settings, scope=scope, policy=chosen, budget=budget))
    if as_json:
        terminal.print_json(
            {
                "conversations": [one.to_json() for one in found],
                "repeated": round(repeated(found), 6),
                "seconds": round(seconds, 3),
            }
        )
        if any(one.failed for one in found):
            terminal.warn(shown.failures(found))
        return
    out = terminal.out()
    out.print(shown.replays_table(found, width=out.width))
    out.print()
    out.print(shown.outcome(found))
    out.print(f"Policy {terminal.one_line(policy)}, budget {budget:,} tokens; it took {seconds:.1f} s.")


async def _replayed(
    transcripts: Sequence[Transcript], settings: Settings, *, scope: Scope, policy: Policy, budget: int
) -> tuple[list[Replayed], float]:
    total = sum(message.opens_turn for transcript in transcripts for message in transcript.messages)
    what = transcripts[0].id if len(transcripts) == 1 else f"{len(transcripts)} conversations"
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeRemainingColumn(),
    )
    begun = time.monotonic()
    console = terminal.err()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("opening the database", total=total)
        async with hitherto.open(settings.database, window=settings.window or budget, **WAITED_FOR) as memory:
            progress.update(bar, description=f"replaying {terminal.one_line(what)[:30]}")
            found = await replay(
                memory,
                transcripts,
                scope=scope,
                policy=policy,
                budget=budget,
                counter=tokens.counter_for(settings.encoding),
                advance=lambda: progress.advance(bar),
            )
    return found, time.monotonic() - begun
