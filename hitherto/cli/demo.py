"""`hitherto demo`: a replay of the conversation that ships with Hitherto."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path

import hitherto
from hitherto.cli import options, output
from hitherto.cli.context import context_and_manifest
from hitherto.cli.digests import digests_table
from hitherto.cli.options import DEFAULT_SCOPE, Target
from hitherto.cli.replay.command import run_replay
from hitherto.cli.replay.tables import rounds_table, summary
from hitherto.cli.transcripts.transcript import parse
from hitherto.settings import Settings
from hitherto.wiring import IN_MEMORY

_NAME = "demo"


def demo(budget: options.Budget = 2_000, *, target: Target) -> None:
    """Replay a conversation that ships with Hitherto.

    Shows what the memory makes of it, round by round. Needs no key and no network. With HITHERTO_MODEL set, that model
    makes the digests.
    """
    settings = Settings.load(database=target.database)
    source = resources.files("hitherto").joinpath("data/demo.jsonl").read_bytes()
    (found,) = run_replay(parse(source, Path(_NAME)), target, policy=hitherto.sliding_window(), budget=budget)
    digests = digests_table(found.digests, title=f"The digests, made by {settings.model}")
    last = () if found.last is None else context_and_manifest(found.last, title="The last context")
    output.show(rounds_table(found.rounds, budget=budget), "", digests, "", *last, "", summary([found]), "")
    output.out().print(_next_steps(target, stored=settings.database != IN_MEMORY), soft_wrap=True)


def _next_steps(target: Target, *, stored: bool) -> str:
    steps = [
        ("your own conversation, one message a line", "hitherto replay YOURS.jsonl"),
        ("digests by a model", "HITHERTO_MODEL=gpt-4.1-mini HITHERTO_MODEL_KEY=… hitherto demo"),
    ]
    if stored:
        # The address may have a password in it.
        given = "" if target.database is None else " --database …"
        for name in ("tenant", "user", "agent"):
            if (value := getattr(target.scope, name)) != getattr(DEFAULT_SCOPE, name):
                given += f" --{name} {output.one_line(shlex.quote(value))}"
        steps = [
            ("every message is still there", f"hitherto log {_NAME}{given}"),
            ("the newest digest, with its sources", f"hitherto digests {_NAME}{given}"),
            ("the context of the next request", f"hitherto context {_NAME}{given} --message 'Who speaks?'"),
            *steps,
        ]
    return "\n".join(["What to try next:", *(f"  {what + ':':42} {command}" for what, command in steps)])
