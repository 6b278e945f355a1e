"""The command `replay`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer

import hitherto
from hitherto import tokens
from hitherto.cli import options
from hitherto.cli.memory import WAIT_FOR_DIGESTS, run
from hitherto.cli.options import Target
from hitherto.cli.policies import parse_policy
from hitherto.cli.replay.rounds import Replayed, repeated, replay_all
from hitherto.cli.replay.tables import failures, replays_table, summary
from hitherto.cli.terminal import output
from hitherto.cli.transcripts.transcript import Transcript, load
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import PRESETS
from hitherto.settings import Settings


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

    Takes a context, appends and digests, round by round. The conversation is kept under the transcript's name. An
    earlier replay of that name is replaced.
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
    transcripts: Sequence[Transcript], target: Target, *, policy: Policy, budget: int, question: str | None = None
) -> list[Replayed]:
    """Replay transcripts into the target, with a progress bar, and ask each the `question` in the end."""
    settings = Settings.load(database=target.database)
    rounds = sum(message.opens_turn for transcript in transcripts for message in transcript.messages)
    name = transcripts[0].id if len(transcripts) == 1 else f"{len(transcripts)} conversations"

    async def work() -> list[Replayed]:
        with output.progress() as progress:
            bar = progress.add_task("opening the database", total=rounds)
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
