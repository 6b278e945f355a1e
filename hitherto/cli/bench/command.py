"""The commands of `bench`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hitherto
from hitherto.cli import options, output
from hitherto.cli.app import group
from hitherto.cli.bench.questions import LabeledConversation, load
from hitherto.cli.bench.retrieval import RecallReport, SearchIn, measure
from hitherto.cli.memory import run
from hitherto.cli.tables import NONE, numbers, table_of
from hitherto.engine.recall.arguments import MOST
from hitherto.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table


def retrieval(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Conversations and questions, as a LoCoMo file.")],
    k: Annotated[str, typer.Option(metavar="LIST", help="Measure the best k hits, for each k.")] = "5,10,20,30",
    scope: Annotated[
        SearchIn, typer.Option(help="Ask each question within its conversation, or over all of them.")
    ] = SearchIn.CONVERSATION,
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of HITHERTO_EMBEDDER; none searches by words only.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A PostgreSQL server on which a database is created for this, and dropped. Without it: a server of "
            "its own in a temporary directory.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Measure recall: how much of what answers a question is among the best k.

    Appends and indexes the conversations in a database of its own, which is dropped afterwards, and asks every question
    that has evidence.
    """
    ks = _ks(k)
    conversations = load(file)
    report = run(_measure(conversations, ks, scope, embedder, database))
    if as_json:
        output.print_json(report.to_json())
        return
    where = "each within its conversation" if scope is SearchIn.CONVERSATION else "each in all conversations"
    output.say(f"Recall at k in {file.name}: {len(report.counted):,} questions, {where}")
    output.show(_table(report), "")
    output.say(_remarks(report))


def _ks(text: str) -> list[int]:
    """Raises InvalidInput."""
    try:
        ks = [int(part) for part in text.split(",")]
    except ValueError:
        ks = []
    if not ks or not all(1 <= k <= MOST for k in ks):
        raise InvalidInput(f"--k is {text!r}; give whole numbers from 1 to {MOST}, as in 5,10,20,30")
    return sorted(set(ks))


async def _measure(
    conversations: Sequence[LabeledConversation],
    ks: Sequence[int],
    search_in: SearchIn,
    embedder: str | None,
    database: str | None,
) -> RecallReport:
    from hitherto.cli.bench.database import temporary_database

    steps = sum(len(labeled.transcript.messages) + len(labeled.questions) for labeled in conversations)
    async with temporary_database(database) as url, hitherto.open(url, embedder=embedder, worker=False) as memory:
        with output.progress() as progress:
            bar = progress.add_task("messages and questions", total=steps)
            return await measure(
                memory, conversations, ks=ks, search_in=search_in, advance=lambda count: progress.advance(bar, count)
            )


def _table(report: RecallReport) -> Table:
    table = table_of(None)
    table.add_column("category")
    numbers(table, "questions", *(f"@{k}" for k in report.ks))
    for category, answers in report.by_category().items():
        name = NONE if category is None else str(category)
        adversarial = any(answer.question.adversarial for answer in answers)
        table.add_row(
            f"{name} *" if adversarial else name,
            f"{len(answers):,}",
            *map(_percent, report.recall(answers).values()),
        )
    table.add_section()
    table.add_row("all", f"{len(report.counted):,}", *map(_percent, report.recall(report.counted).values()))
    table.add_row("tokens", "", *(f"{value:,.0f}" for value in report.tokens_at_k().values()))
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _remarks(report: RecallReport) -> str:
    """The other measurements, in words."""
    left_out = len(report.answers) - len(report.counted)
    p50, p95 = report.query_ms(0.5), report.query_ms(0.95)
    remarks = [
        f"{report.messages:,} messages in {report.conversations:,} conversations were indexed in "
        f"{report.index_seconds:.1f} s; a question took {p50:.1f} ms (p50), {p95:.1f} ms (p95).",
        f"Meanings were compared by {report.space}." if report.space else "Only words were compared.",
    ]
    if left_out:
        remarks.append(f"* {left_out:,} questions are adversarial, without an answer; 'all' leaves them out.")
    if report.missing:
        remarks.append(f"Missing: {', '.join(sorted(report.missing))}.")
    return " ".join(remarks)


bench = group("bench", {"retrieval": retrieval})
