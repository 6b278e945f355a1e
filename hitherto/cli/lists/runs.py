"""`hitherto runs`: what an agent did in a conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from hitherto.cli import options
from hitherto.cli.memory import with_memory
from hitherto.cli.options import Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, Column, cut, fitted, minute, name_column, seq_range
from hitherto.core.run import Run, RunEvent
from hitherto.engine.memory import Memory
from hitherto.engine.recall.arguments import MOST
from hitherto.errors import NotFound

_GONE = "erased with a message of the run"
_AGENT = "Name the agent that ran with --agent."


def runs(
    id: options.Conversation,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run. [default: list them]")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="Show at most so many.")] = 50,
    before: Annotated[
        str | None, typer.Option(metavar="RUN", help="List those that were begun before this one.")
    ] = None,
    after: Annotated[int, typer.Option(min=-1, metavar="NUMBER", help="Show the run's events after this one.")] = -1,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """List an agent's runs in a conversation, or show what happened in one.

    The last one begun comes first; the events of a run come in their order.
    """
    if run is None:
        found = with_memory(
            target.database, lambda memory: memory.runs(target.scope).list(id, before=before, limit=limit)
        )
        if as_json:
            output.print_json({"conversation": id, "runs": [_run_json(one) for one in found]})
        elif found:
            output.show(_runs_table(found))
        else:
            output.say(f"No run of {id!r} in {target.scope} is recorded. {_AGENT}")
        return

    async def work(memory: Memory) -> tuple[Run, Sequence[RunEvent]]:
        of = memory.runs(target.scope)
        found = await of.get(run)
        if found is None or found.conversation != id:
            raise NotFound(
                f"there is no run {run} of {id!r} in scope {target.scope}; list them: hitherto runs {id}. {_AGENT}"
            )
        return found, await of.events(run, after=after, limit=limit)

    one, events = with_memory(target.database, work)
    if as_json:
        output.print_json({"run": _run_json(one), "events": [_event_json(event) for event in events]})
        return
    output.show(_runs_table([one]), "", _events_table(events))
    if events and events[-1].no + 1 < one.events:
        output.say(f"There are more: --after {events[-1].no}")


def _runs_table(found: Sequence[Run]) -> Table:
    columns = [
        Column("run", [str(one.id) for one in found], key=True),
        Column("status", [one.status.value for one in found], gives=1),
        Column("messages", [_messages(one) for one in found], gives=3, right=True),
        Column("events", [f"{one.events:,}" for one in found], gives=2, right=True),
        Column("freed", [f"{one.freed:,}" for one in found], gives=4, right=True),
        Column("begun (UTC)", [minute(one.started_at) for one in found], gives=5),
        name_column("strategy", [one.strategy or NONE for one in found], gives=6),
    ]
    return fitted(None, columns)


def _messages(run: Run) -> str:
    return NONE if run.end is None else seq_range(run.start, run.end)


def _events_table(events: Sequence[RunEvent]) -> Table:
    told = [_GONE if one.raw is None else json.dumps(one.payload, ensure_ascii=False) for one in events]
    columns = [
        Column("no", [str(one.no) for one in events], right=True),
        Column("event", [one.kind.value for one in events], gives=1),
        name_column("name", [one.name or NONE for one in events], gives=2, most=24),
        Column("payload", [cut(text) for text in told], prose=True),
    ]
    return fitted(None, columns)


def _run_json(run: Run) -> dict[str, Any]:
    told = output.attributes(run, "status", "strategy", "start", "end", "freed", "events", "started_at", "ended_at")
    return {"id": str(run.id), "memory_injection": run.injection, **told}


def _event_json(event: RunEvent) -> dict[str, Any]:
    return output.attributes(event, "no", "kind", "name", "call_id", "payload", "created_at") | {
        "erased": event.raw is None
    }
