"""The command `simulate`: what policies would cost and keep on a transcript of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

import hitherto
from hitherto import tokens, wiring
from hitherto.cli import compared, plot, terminal
from hitherto.cli.app import JsonOption, app
from hitherto.cli.chosen import chosen
from hitherto.cli.running import WAITED_FOR, run
from hitherto.cli.transcript import Transcript, load
from hitherto.core import presets
from hitherto.core.digest import Done
from hitherto.core.policy import Policy
from hitherto.core.price import Price
from hitherto.errors import InvalidBudget, InvalidInput, InvalidPolicy, InvalidTranscript
from hitherto.pricing import listed
from hitherto.settings import Settings
from hitherto.simulation.composed import redact_summarise, redact_trim
from hitherto.simulation.counting import Counting
from hitherto.simulation.figures import Figures
from hitherto.simulation.run import simulate
from hitherto.simulation.steps import steps
from hitherto.wiring import IN_MEMORY

_PRICED = "gpt-4.1-mini"
"""The model whose prices count where nobody names another."""


@app.command(name="simulate")
def simulate_command(
    file: Annotated[Path, typer.Argument(help="JSON lines in OpenAI chat shape, or a LoCoMo file.", metavar="FILE")],
    policies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIST", help="none,trim:max_turns=12,keep_turns=4,mine.json … Without it: every preset, and more."
        ),
    ] = None,
    price: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The agent's model, for its price. [default: gpt-4.1-mini]")
    ] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help="A price list of your own, as JSON.")] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="TOKENS", help="Tokens of one request. [default: the model's window]")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, metavar="TOKENS", help="What policies take a share of. [default: the budget]")
    ] = None,
    instructions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text to be sent with every request, as a system message.")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Of a LoCoMo file, only this sample_id.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", metavar="OUT", help="Draw the tokens of every request: .png, .svg or .pdf."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate policies on a transcript: what each would cost, and what it would keep.

    Sends the transcript again, request by request, under each policy, in memory: nothing is stored. Asks no model but
    the one for digests.
    """
    transcripts = load(file, conversation=conversation)
    requests = sum(bool(step.asked) for one in transcripts for step in steps(one.messages))
    if requests == 0:
        raise InvalidTranscript(f"{file} has nothing that was asked of an assistant, so no request was made")
    priced = _price(price, prices)
    budget, window = _limits(budget, window, priced)
    picked = chosen(policies) if policies else _everything()
    _check_possible(picked)
    said = None if instructions is None else _text(instructions)
    if picture is not None:
        if len(transcripts) > 1:
            raise InvalidInput(f"{file} has {len(transcripts)} conversations; choose one to draw with --conversation")
        plot.check(picture)
    simulated = _simulated(
        transcripts, picked, priced, requests=requests, budget=budget, window=window, instructions=said
    )
    found = run(simulated)
    if picture is not None:
        plot.draw(picture, found, title=transcripts[0].id, budget=budget)
    if as_json:
        terminal.print_json({"policies": [one.to_json() for one in found]})
    else:
        out = terminal.out()
        out.print(compared.table(found, width=out.width, title=_title(transcripts, requests)))
        out.print()
        out.print(compared.remarks(priced, budget=budget, everything=not policies, picture=picture))
    if any(one.failed for one in found):
        terminal.warn(compared.failures(found))


def _limits(budget: int | None, window: int | None, price: Price) -> tuple[int, int]:
    """The budget and the window, as given, or as large as the model's."""
    if window is not None and window > price.window:
        raise InvalidBudget(f"--window is {window:,}, and {price.model} takes {price.window:,} tokens; give less")
    budget = budget or window or price.window
    if budget > (window or price.window):
        raise InvalidBudget(f"--budget is {budget:,}, more than the window of {window or price.window:,} tokens")
    return budget, window or budget


def _everything() -> dict[str, Policy]:
    """Every preset that can be simulated, and policies of several stages."""
    named = {name.replace("_", "-"): presets.parse(name) for name in presets.PRESETS}
    composed = {one.name: one for one in (redact_summarise(), redact_trim())}
    return {name: one for name, one in {**named, **composed}.items() if not one.doing(Done.COMPACT)}


def _check_possible(policies: Mapping[str, Policy]) -> None:
    for name, policy in policies.items():
        if policy.doing(Done.COMPACT):
            raise InvalidPolicy(
                f"{name!r} cannot be simulated: what a model's own compaction leaves is its endpoint's secret, and so "
                "is the size of it; leave it out"
            )


def _price(model: str | None, own: Path | None) -> Price:
    return listed(own).named(_PRICED if model is None and own is None else model)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot read the instructions {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInput(f"the instructions {path} are no UTF-8: {error}") from error


def _title(transcripts: Sequence[Transcript], requests: int) -> str:
    name = transcripts[0].id if len(transcripts) == 1 else f"{len(transcripts)} conversations"
    messages = sum(len(one.messages) for one in transcripts)
    return f"{name}: {messages:,} messages, {requests:,} requests"


async def _simulated(
    transcripts: Sequence[Transcript],
    policies: Mapping[str, Policy],
    price: Price,
    *,
    requests: int,
    budget: int,
    window: int,
    instructions: str | None,
) -> list[Figures]:
    settings = Settings.load()
    counter = tokens.counter_for(settings.encoding)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = terminal.err()
    found: list[Figures] = []
    async with AsyncExitStack() as opened:
        making = wiring.model_of(settings, opened)
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("", total=len(policies) * requests)
            for name, policy in policies.items():
                progress.update(bar, description=terminal.one_line(name)[:30])
                model, into = Counting(making, counter), Figures(policy=name, price=price)
                async with hitherto.open(
                    IN_MEMORY, model=model, policy=policy, window=window, injection=False, **WAITED_FOR
                ) as memory:
                    for one in transcripts:
                        await simulate(
                            memory,
                            one.id,
                            one.messages,
                            into,
                            model=model,
                            budget=budget,
                            counter=counter,
                            instructions=instructions,
                            advance=lambda: progress.advance(bar),
                        )
                found.append(into)
    return found
