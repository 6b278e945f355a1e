"""The commands of `bench`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

import hitherto
from hitherto import tokens
from hitherto.cli import options
from hitherto.cli.app import group
from hitherto.cli.bench.context import ContextReport, elsewhere_of, evidence_of, repeated_of
from hitherto.cli.bench.context import measure as measure_contexts
from hitherto.cli.bench.plot import draw
from hitherto.cli.bench.questions import LabeledConversation, load, spread
from hitherto.cli.bench.retrieval import RecallReport, SearchIn, by_category, measure
from hitherto.cli.bench.work import measure as measure_work
from hitherto.cli.memory import WAIT_FOR_DIGESTS, run
from hitherto.cli.policies import parse_policies
from hitherto.cli.simulate.plot import check
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, numbers, table_of
from hitherto.cli.transcripts import transcript as transcripts
from hitherto.cli.transcripts.transcript import FileConversation
from hitherto.core.log.message import CHAT, Wire
from hitherto.core.policy.policy import Policy
from hitherto.engine.arguments import MOST
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput, InvalidTranscript
from hitherto.settings import Settings
from hitherto.simulation.work import CACHED_PRICES, Seen, WorkFigures, needs
from hitherto.wire import codec
from hitherto.wiring import IN_MEMORY

if TYPE_CHECKING:
    from rich.table import Table


_File = Annotated[Path, typer.Argument(metavar="FILE", help="Conversations and questions, as a LoCoMo file.")]
_Embedder = Annotated[
    str | None, typer.Option(metavar="NAME", help="Instead of HITHERTO_EMBEDDER; none searches by words only.")
]
_Picture = Annotated[
    Path | None,
    typer.Option("--plot", metavar="OUT", help="Draw the evidence by category into a .png, .svg or .pdf."),
]
_T = TypeVar("_T")


def retrieval(
    file: _File,
    k: Annotated[str, typer.Option(metavar="LIST", help="Measure the best k hits, for each k.")] = "5,10,20,30",
    scope: Annotated[
        SearchIn, typer.Option(help="Ask each question within its conversation, or over all of them.")
    ] = SearchIn.CONVERSATION,
    embedder: _Embedder = None,
    picture: _Picture = None,
    as_json: options.Json = False,
) -> None:
    """Measure recall: how much of what answers a question is among the best k.

    Appends and indexes the conversations on a PostgreSQL server of its own, which is gone afterwards, and asks every
    question that has evidence.
    """
    ks = _numbers(k, "--k", 1, MOST, "5,10,20,30")
    conversations = load(file)
    if picture is not None:
        check(picture)

    async def measured(memory: Memory, advance: Callable[[int], None]) -> RecallReport:
        return await measure(memory, conversations, ks=ks, search_in=scope, advance=advance)

    report = run(_measured(conversations, embedder, measured, worker=False))
    if picture is not None:
        groups = {**report.by_category(), "all": report.counted}
        shares = [report.recall(answers) for answers in groups.values()]
        bars = {f"among the best {one}": [100 * each[one] for each in shares] for one in report.ks}
        draw(picture, f"{file.name}: evidence found, by category", [*map(_name, groups)], bars)
    if as_json:
        output.print_json(report.to_json())
        return
    where = "each within its conversation" if scope is SearchIn.CONVERSATION else "each in all conversations"
    output.say(f"Recall at k in {file.name}: {len(report.counted):,} questions, {where}")
    output.show(_table(report), "")
    output.say(_remarks(report))


def context(
    file: _File,
    budget: Annotated[str, typer.Option(metavar="LIST", help="Measure contexts of these tokens.")] = "2000,8000",
    policy: Annotated[str | None, typer.Option(metavar="POLICY", help="The policy, instead of the default.")] = None,
    recall: Annotated[
        bool | None, typer.Option("--recall/--no-recall", help="Recall, or not, whatever the policy does.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Ask about this many questions, spread over all, not all.")
    ] = None,
    sessions: Annotated[
        bool,
        typer.Option(
            "--sessions",
            help="Each session is a conversation of its own; ask in a new one, and in somebody else's scope.",
        ),
    ] = False,
    beside: Annotated[
        int, typer.Option(metavar="N", min=0, help="Put N other conversations of the file into each scope too.")
    ] = 0,
    nameless: Annotated[bool, typer.Option("--no-names", help="Leave out who said each message.")] = False,
    embedder: _Embedder = None,
    picture: _Picture = None,
    as_json: options.Json = False,
) -> None:
    """Measure contexts: how much of what answers a question they show.

    Appends and indexes each conversation in a scope of its own, on a PostgreSQL server that is gone afterwards, and
    asks for the context of every question that has evidence.
    """
    budgets = _numbers(budget, "--budget", 1, 10_000_000, "2000,8000")
    conversations = spread(load(file, named=not nameless), questions)
    if beside >= len(conversations):
        raise InvalidInput(f"--beside is {beside}; {file.name} has {len(conversations):,} conversations: give fewer")
    if picture is not None:
        check(picture)

    async def measured(memory: Memory, advance: Callable[[int], None]) -> ContextReport:
        return await measure_contexts(
            memory,
            conversations,
            budgets=budgets,
            policy=policy,
            recall=recall,
            sessions=sessions,
            beside=beside,
            advance=advance,
        )

    report = run(_measured(conversations, embedder, measured, worker=True, copies=1 + beside))
    if picture is not None:
        groups = [{**by_category(results), "all": results} for results in report.results.values()]
        shares = [[evidence_of(results) for results in each.values()] for each in groups]
        bars = dict(zip((f"{budget:,} tokens" for budget in report.results), shares, strict=True))
        draw(picture, f"{file.name}: evidence shown, by category", [*map(_name, groups[0])], bars)
    if as_json:
        output.print_json(report.to_json())
        return
    count = len(next(iter(report.results.values())))
    output.say(f"Evidence shown in {file.name}: {count:,} questions, policy {report.policy}")
    output.show(_evidence_table(report), "")
    output.say(
        f"{report.messages:,} messages in {report.conversations:,} conversations. A context took {report.ms(0.5):.1f} "
        f"ms (p50), {report.ms(0.95):.1f} ms (p95). Repeated: what begins as in the request before, up to what is "
        "recalled."
        + (" Recalled elsewhere: tokens, where somebody else's scope is asked." if sessions else "")
        + (f" Missing: {', '.join(sorted(report.missing))}." if report.missing else "")
    )


def work(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Transcripts of agents; - for standard input.")
    ],
    budget: Annotated[
        list[str] | None, typer.Option(metavar="LIST", help="Measure contexts of these tokens. [default: 2500,4000]")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="LIST", help="Measure these policies. [default: balanced]")
    ] = None,
    wire: Annotated[str, typer.Option(metavar="FORMAT", help="openai.chat, openai.responses or anthropic.")] = CHAT,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model that the requests are for; its tokenizer counts.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Measure the first N conversations only.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Measure contexts of agents at work: how much of what each step needs they show, and what they cost.

    Appends each transcript as an agent does, on a PostgreSQL server that is gone afterwards, and asks for a context
    before each answer of the assistant.
    """
    budgets = _numbers(",".join(budget or ["2500,4000"]), "--budget", 1, 10_000_000, "2500,4000")
    policies = parse_policies(policy or ["balanced"])
    wire = cast(Wire, codec(wire).name)
    unreadable: list[str] = []
    conversations = [one for file in files for one in transcripts.load(file, unreadable=unreadable)][:limit]
    if not any(True for one in conversations for _ in needs(one.messages)):
        why = "; ".join(["no assistant answers anything in these transcripts: nothing to measure", *unreadable[:1]])
        raise InvalidTranscript(why)
    found = run(_work(conversations, policies, budgets, wire, model))
    if as_json:
        messages = sum(len(one.messages) for one in conversations)
        output.print_json(
            {
                "conversations": len(conversations),
                "messages": messages,
                "unreadable": unreadable,
                "wire": wire,
                "model": model,
                "results": [one.to_json() for one in found],
            }
        )
        return
    names = ", ".join(file.name for file in files)
    output.say(f"Requests before an answer in {names}: {found[0].requests:,} in {len(conversations):,} conversations")
    for why in unreadable:
        output.say(f"Not readable, left out: {why}")
    for name in policies:
        output.show("", _work_table(name, [one for one in found if one.policy == name]))


async def _work(
    conversations: Sequence[FileConversation],
    policies: Mapping[str, Policy],
    budgets: Sequence[int],
    wire: Wire,
    model: str | None,
) -> list[WorkFigures]:
    """The figures of each policy at each budget, in order, from a memory with that budget as its window."""
    counter = tokens.counter_for(model or Settings.load().encoding)
    answers = sum(1 for one in conversations for _ in needs(one.messages))
    found: list[WorkFigures] = []
    with output.progress() as progress:
        bar = progress.add_task("", total=answers * len(policies) * len(budgets))
        for name, policy in policies.items():
            for budget in budgets:
                progress.update(bar, description=output.one_line(f"{name}, {budget:,} tokens"))
                found.append(WorkFigures(policy=name, budget=budget))
                async with hitherto.open(
                    IN_MEMORY, policy=policy, budget=budget, context_window=budget, **WAIT_FOR_DIGESTS
                ) as memory:
                    await measure_work(
                        memory,
                        conversations,
                        found[-1],
                        wire=wire,
                        model=model,
                        counter=counter,
                        advance=lambda: progress.advance(bar),
                    )
    return found


async def _measured(
    conversations: Sequence[LabeledConversation],
    embedder: str | None,
    measured: Callable[[Memory, Callable[[int], None]], Awaitable[_T]],
    *,
    worker: bool,
    copies: int = 1,
) -> _T:
    """What `measured` returns for an empty memory, on a server of its own, and a function that takes its progress.
    `copies` is how often each message is appended."""
    steps = sum(copies * len(labeled.transcript.messages) + len(labeled.questions) for labeled in conversations)
    async with hitherto.open(IN_MEMORY, embedder=embedder, worker=worker) as memory:
        with output.progress() as progress:
            bar = progress.add_task("messages and questions", total=steps)
            return await measured(memory, lambda count: progress.advance(bar, count))


def _evidence_table(report: ContextReport) -> Table:
    table = table_of(None)
    table.add_column("category")
    numbers(table, "questions", *(f"{budget:,}" for budget in report.results))
    categories = [by_category(results) for results in report.results.values()]
    for category, results in categories[0].items():
        name = _name(category)
        shares = (f"{evidence_of(of[category]):.1f}%" for of in categories)
        table.add_row(name, f"{len(results):,}", *shares)
    table.add_section()
    every = list(report.results.values())
    table.add_row("all", f"{len(every[0]):,}", *(f"{evidence_of(results):.1f}%" for results in every))
    table.add_row("tokens", "", *(f"{fmean(one.tokens for one in results):,.0f}" for results in every))
    table.add_row("recalled", "", *(f"{fmean(one.recalled for one in results):,.0f}" for results in every))
    elsewhere = [elsewhere_of(results) for results in every]
    if any(one is not None for one in elsewhere):
        table.add_row("recalled elsewhere", "", *(NONE if one is None else f"{one:,.0f}" for one in elsewhere))
    repeated = [repeated_of(results) for results in every]
    table.add_row("repeated", "", *(NONE if share is None else f"{share:.1f}%" for share in repeated))
    return table


def _work_table(policy: str, found: Sequence[WorkFigures]) -> Table:
    """The figures of one policy, a column for each budget."""
    table = table_of(None)
    table.add_column(policy)
    numbers(table, *(f"{one.budget:,}" for one in found))
    table.add_row("requests that could not be made", *(f"{one.refused:,}" for one in found))
    table.add_row("requests an API would refuse", *(f"{one.unacceptable:,}" for one in found))
    table.add_row("budget too small for what must be there", *(f"{one.too_large:,}" for one in found))
    table.add_section()
    seen: dict[str, Callable[[WorkFigures], Seen]] = {
        "rules, whole": lambda one: one.rules,
        "rules, first 200 characters": lambda one: one.rules_begin,
        "the user's words in the running turn": lambda one: one.words,
        "the first user message": lambda one: one.task,
        "values that calls need": lambda one: one.values,
    }
    for label, of in seen.items():
        table.add_row(label, *(_share(of(one)) for one in found))
    table.add_section()
    table.add_row("tokens", *(f"{one.context.sent:,}" for one in found))
    for price in CACHED_PRICES:
        ratios = (one.cost_ratio(price) for one in found)
        shown = (NONE if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        table.add_row(f"cost / whole log's, cached at {price}", *shown)
    return table


def _share(seen: Seen) -> str:
    return NONE if seen.share is None else f"{_percent(seen.share)} of {seen.count:,}"


def _numbers(text: str, option: str, minimum: int, maximum: int, example: str) -> list[int]:
    """Raises InvalidInput."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(minimum <= one <= maximum for one in found):
        raise InvalidInput(f"{option} is {text!r}; give whole numbers from {minimum} to {maximum}, as in {example}")
    return sorted(set(found))


def _table(report: RecallReport) -> Table:
    table = table_of(None)
    table.add_column("category")
    numbers(table, "questions", *(f"@{k}" for k in report.ks))
    for category, answers in report.by_category().items():
        name = _name(category)
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


def _name(category: int | str | None) -> str:
    return NONE if category is None else str(category)


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


bench = group("bench", {"retrieval": retrieval, "context": context, "work": work})
