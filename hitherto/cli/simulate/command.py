"""The command `simulate`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

import hitherto
from hitherto import tokens, wiring
from hitherto.cli import options
from hitherto.cli.bench.questions import load as load_questions
from hitherto.cli.bench.questions import spread
from hitherto.cli.memory import WAIT_FOR_DIGESTS, run
from hitherto.cli.policies import COMPOSED, parse_policies, parse_policy
from hitherto.cli.simulate import plot
from hitherto.cli.simulate.table import FULL_HISTORY, failures, policies_table, remarks
from hitherto.cli.terminal import output
from hitherto.cli.transcripts.transcript import FileConversation, load
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import PRESETS
from hitherto.core.price import Price
from hitherto.errors import InvalidBudget, InvalidInput, InvalidPolicy, InvalidTranscript
from hitherto.pricing import listed
from hitherto.settings import Settings
from hitherto.simulation import run as simulation
from hitherto.simulation.figures import Figures, Labeled
from hitherto.simulation.run import Counting, full_history, steps
from hitherto.wiring import IN_MEMORY

_DEFAULT_MODEL = "gpt-4.1-mini"
"""The model whose prices apply if neither --price nor --prices is given."""

_QUESTIONS = 50
"""The most questions that are asked under each policy."""

_AT_ONCE = 4
"""How many policies are simulated at the same time: while the database works for one, this process does for another."""


def simulate(
    file: options.TranscriptFile,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIST", help="none,trim:max_turns=12,keep_turns=4,mine.json … Without it: every preset, and more."
        ),
    ] = None,
    price: Annotated[
        str | None, typer.Option(metavar="MODEL", help=f"The agent's model, for its price. [default: {_DEFAULT_MODEL}]")
    ] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help="Your own price list, as JSON.")] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, metavar="TOKENS", help="The most tokens of one request. [default: HITHERTO_BUDGET]"),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(min=1, metavar="TOKENS", help="The window that policies take a share of. [default: the budget]"),
    ] = None,
    instructions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A text that is sent with every request, as a system message.")
    ] = None,
    conversation: options.SampleId = None,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", metavar="OUT", help="Draw the tokens of every request into a .png, .svg or .pdf."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Simulate policies on a transcript: what each would cost, and what it would show.

    Sends the transcript again under each policy, request by request, and compares that with sending the full history
    each time. Nothing is stored. Calls no model but the one for digests. Where the file has questions, as
    LoCoMo files do, it asks some of them in the end.
    """
    transcripts = load(file, conversation=conversation)
    requests = sum(bool(step.asked) for transcript in transcripts for step in steps(transcript.messages))
    if requests == 0:
        raise InvalidTranscript(f"{file} has nothing that was asked of an assistant, so no request was made")
    used = listed(prices).named(_DEFAULT_MODEL if price is None and prices is None else price)
    budget, window = _limits(budget, window, used)
    chosen = _possible(parse_policies(policies)) if policies else _all_policies()
    questions = _questions(file, transcripts)
    text = None if instructions is None else _read(instructions)
    if picture is not None:
        if len(transcripts) > 1:
            raise InvalidInput(f"{file} has {len(transcripts)} conversations; choose one to draw with --conversation")
        plot.check(picture)
    found = run(
        _simulate(
            transcripts,
            chosen,
            used,
            requests=requests,
            budget=budget,
            window=window,
            instructions=text,
            questions=questions,
        )
    )
    if picture is not None:
        plot.draw(picture, found, title=transcripts[0].id, budget=budget)
    if as_json:
        output.print_json({"policies": [figures.to_json() for figures in found]})
    else:
        asked = sum(map(len, questions.values()))
        table = policies_table(found, title=_title(transcripts, requests))
        says = remarks(
            used,
            budget=budget,
            largest=found[0].max_request_tokens,
            questions=asked,
            every_policy=not policies,
            picture=picture,
        )
        output.show(table, "", says)
    if any(figures.failed for figures in found):
        output.warn(failures(found))


def _limits(budget: int | None, window: int | None, price: Price) -> tuple[int, int]:
    """The budget (as a context has it by default) and the window (the model's), or what was given. Raises
    InvalidBudget."""
    if window is not None and window > price.window:
        raise InvalidBudget(f"--window is {window:,}, and {price.model} takes {price.window:,} tokens; give less")
    given, most = budget, window or price.window
    budget = given or min(Settings.load().budget, most)
    if budget > most:
        raise InvalidBudget(f"--budget is {budget:,}, more than the window of {most:,} tokens")
    return budget, window or budget


def _questions(file: Path, transcripts: Sequence[FileConversation]) -> dict[str, Sequence[Labeled]]:
    """Some of the file's questions about these conversations, by conversation; empty where it has none."""
    try:
        labeled = load_questions(file)
    except InvalidTranscript:
        return {}
    names = {transcript.id for transcript in transcripts}
    chosen = spread([one for one in labeled if one.transcript.id in names], _QUESTIONS)
    return {one.transcript.id: one.questions for one in chosen}


def _all_policies() -> dict[str, Policy]:
    """Every preset that can be simulated, and the composed policies."""
    policies = {name: parse_policy(name)[1] for name in (*PRESETS, *COMPOSED)}
    return {name: policy for name, policy in policies.items() if not policy.doing(DigestAction.COMPACT)}


def _possible(policies: dict[str, Policy]) -> dict[str, Policy]:
    """The policies themselves. Raises InvalidPolicy if one cannot be simulated."""
    for name, policy in policies.items():
        if policy.doing(DigestAction.COMPACT):
            raise InvalidPolicy(
                f"{name!r} cannot be simulated: what its endpoint leaves is opaque, and so is its size; leave it out"
            )
    return policies


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot read the instructions {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInput(f"the instructions {path} are not UTF-8: {error}") from error


def _title(transcripts: Sequence[FileConversation], requests: int) -> str:
    name = transcripts[0].id if len(transcripts) == 1 else f"{len(transcripts)} conversations"
    messages = sum(len(transcript.messages) for transcript in transcripts)
    return f"{name}: {messages:,} messages, {requests:,} requests"


async def _simulate(
    transcripts: Sequence[FileConversation],
    policies: Mapping[str, Policy],
    price: Price,
    *,
    requests: int,
    budget: int,
    window: int,
    instructions: str | None,
    questions: Mapping[str, Sequence[Labeled]],
) -> list[Figures]:
    """The figures of the full history and those of each policy."""
    settings = Settings.load()
    counter = tokens.counter_for(settings.encoding if price.cache_breakpoints == "none" else price.model)
    full = Figures(policy=FULL_HISTORY, price=price)
    for one in transcripts:
        asked = questions.get(one.id, ())
        full_history(one.messages, full, counter=counter, instructions=instructions, questions=asked)
    turns = asyncio.Semaphore(_AT_ONCE)
    async with AsyncExitStack() as opened:
        digest_model = wiring.model_of(settings, opened)
        progress = opened.enter_context(output.progress())
        bar = progress.add_task("", total=len(policies) * requests)

        async def figures_of(name: str, policy: Policy) -> Figures:
            model, figures = Counting(digest_model, counter), Figures(policy=name, price=price)
            async with (
                turns,
                hitherto.open(
                    IN_MEMORY,
                    model=model,
                    policy=policy,
                    budget=budget,
                    context_window=window,
                    cross_session=(),
                    **WAIT_FOR_DIGESTS,
                ) as memory,
            ):
                progress.update(bar, description=output.one_line(name)[:30])
                for transcript in transcripts:
                    await simulation.simulate(
                        memory,
                        transcript.id,
                        transcript.messages,
                        figures,
                        model=model,
                        budget=budget,
                        counter=counter,
                        instructions=instructions,
                        questions=questions.get(transcript.id, ()),
                        advance=lambda: progress.advance(bar),
                    )
            return figures

        simulating = [asyncio.create_task(figures_of(*each)) for each in policies.items()]
        try:
            return [full, *await asyncio.gather(*simulating)]
        finally:
            for one in simulating:
                if not one.cancelling():  # a second time would end its closing
                    one.cancel()
            await asyncio.wait(simulating)
