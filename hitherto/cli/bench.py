"""The command `bench retrieval`: how well recall finds what answers questions of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import hitherto
from hitherto.cli import terminal
from hitherto.cli.app import JsonOption, app
from hitherto.cli.evidence import Asked, load
from hitherto.cli.retrieval import Among, Measured, indexed, loaded, measured
from hitherto.cli.running import run
from hitherto.cli.scratch import scratch
from hitherto.cli.tables import numbers, table_of
from hitherto.engine.asked import MOST
from hitherto.errors import InvalidInput

bench = typer.Typer(
    name="bench",
    help="Measure Hitherto on data of your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench)


@bench.callback()
def options() -> None:
    """Measure Hitherto on data of your own."""


@bench.command()
def retrieval(
    file: Annotated[Path, typer.Argument(help="Conversations and questions in LoCoMo's shape.", metavar="FILE")],
    k: Annotated[str, typer.Option(metavar="LIST", help="So many of the best are looked at.")] = "5,10,20,30",
    scope: Annotated[
        Among, typer.Option(help="Ask each question within its conversation, or over all of them.")
    ] = Among.CONVERSATION,
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of HITHERTO_EMBEDDER; none compares words alone.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A PostgreSQL server on which a database is created for this, and dropped. Without it: a server of "
            "its own in a temporary directory.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure recall: how much of what answers a question is among the best k.

    Loads the conversations through append and index into a database of its own, which is gone afterwards, and asks
    every question that has evidence.
    """
    ks = _ks(k)
    asked = load(file)
    found = run(_measured(asked, ks, scope, embedder, database))
    if as_json:
        terminal.print_json(found.to_json())
        return
    out = terminal.out()
    where = "each within its conversation" if scope is Among.CONVERSATION else "each in all conversations"
    out.print(terminal.one_line(f"Recall at k in {file.name}: {len(found.counted):,} questions, {where}"))
    out.print(_table(found))
    out.print(f"\n{_outcome(found)}")


def _ks(text: str) -> list[int]:
    """Raises InvalidInput."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(1 <= one <= MOST for one in found):
        raise InvalidInput(f"--k is {text!r}; give whole numbers from 1 to {MOST}, as in 5,10,20,30")
    return sorted(set(found))


async def _measured(
    asked: Sequence[Asked], ks: Sequence[int], among: Among, embedder: str | None, database: str | None
) -> Measured:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = terminal.err()
    messages, questions = (
        sum(len(one.transcript.messages) for one in asked),
        sum(len(one.questions) for one in asked),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("opening a database", total=messages)
        async with scratch(database) as url, hitherto.open(url, embedder=embedder, worker=False) as memory:
            progress.update(bar, description="appending messages")
            await loaded(memory, asked, advance=lambda some: progress.advance(bar, some))
            progress.update(bar, description="indexing messages")
            seconds = await indexed(memory)
            progress.reset(bar, description="asking questions", total=questions)
            return await measured(
                memory, asked, ks=ks, among=among, index_seconds=seconds, advance=lambda: progress.advance(bar)
            )


def _table(found: Measured) -> Table:
    table = table_of(None)
    table.add_column("category")
    numbers(table, "questions", *(f"@{k}" for k in found.ks))
    for category, answered in found.by_category().items():
        name = "–" if category is None else str(category)
        adversarial = any(one.question.adversarial for one in answered)
        table.add_row(
            f"{name} *" if adversarial else name,
            f"{len(answered):,}",
            *(_percent(value) for value in found.recall(answered).values()),
        )
    table.add_section()
    table.add_row("all", f"{len(found.counted):,}", *map(_percent, found.recall(found.counted).values()))
    table.add_row("tokens", "", *(f"{value:,.0f}" for value in found.tokens_at_k().values()))
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _outcome(found: Measured) -> str:
    """What else was measured, in words."""
    left_out = len(found.answered) - len(found.counted)
    p50, p95 = found.query_ms(0.5), found.query_ms(0.95)
    said = [
        f"{found.messages:,} messages in {found.conversations:,} conversations were indexed in "
        f"{found.index_seconds:.1f} s; a question took {p50:.1f} ms (p50), {p95:.1f} ms (p95).",
        f"Meanings were compared by {found.space}." if found.space else "Only words were compared.",
    ]
    if left_out:
        said.append(f"* {left_out:,} questions are adversarial, without an answer; 'all' leaves them out.")
    if found.missing:
        said.append(f"Missing: {', '.join(sorted(found.missing))}.")
    return terminal.one_line(" ".join(said))
