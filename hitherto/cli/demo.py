"""`hitherto demo`: a replay of the conversation that ships with Hitherto."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

import hitherto
from hitherto.cli import options
from hitherto.cli.context import manifest_tables
from hitherto.cli.log import digests_table
from hitherto.cli.options import Target, default_scope
from hitherto.cli.replay.command import requests_table, run_replay, summary
from hitherto.cli.terminal import output
from hitherto.cli.transcripts.transcript import parse
from hitherto.engine.context.context import Context
from hitherto.settings import Settings
from hitherto.wiring import IN_MEMORY

_NAME = "demo"

_QUESTION, _ABOUT = "What exactly is Ansa allergic to, and what does she carry?", "Ansa"
"""What is asked in the end: the third message of the conversation answers it."""


def demo(budget: options.Budget = 2_000, *, target: Target) -> None:
    """Replay a conversation that ships with Hitherto, and ask about its beginning.

    Shows what each request would have cost, and what the last context holds. Needs no key and no network. With
    HITHERTO_MODEL set, that model makes digests.
    """
    settings = Settings.load(database=target.database)
    source = resources.files("hitherto").joinpath("data/demo.jsonl").read_bytes()
    (found,) = run_replay(
        parse(source, Path(_NAME)), target, policy=hitherto.balanced(), budget=budget, question=_QUESTION
    )
    parts: list[RenderableType] = [requests_table(found.sent, budget=budget), ""]
    if found.digests:
        parts += [digests_table(found.digests, title=f"The digests, made by {settings.model}"), ""]
    if found.last is not None:
        last, sent = found.last, len(found.sent)
        title = f"Asked after {sent} requests: {last.tokens:,} tokens are sent, instead of {found.full:,}"
        parts += [_asked(last, title), "", manifest_tables(last.manifest), ""]
    if found.later is not None:
        title = f"Asked in a new conversation: {found.later.tokens:,} tokens are sent"
        parts += [_asked(found.later, title), ""]
    output.show(*parts, summary([found]), "")
    output.out().print(_next_steps(target, stored=settings.database != IN_MEMORY), soft_wrap=True)


def _asked(context: Context, title: str) -> Panel:
    """The question, and what was recalled for it."""
    recalled = str(context.messages[-2]["content"]).splitlines()[1:] if context.manifest.recalled else []
    what = "Recalled for it, among the rest:" if recalled else "All that was said is in its context, word for word."
    text = Text.assemble(("user: ", "bold cyan"), _QUESTION, "\n\n", (what, "bold"))
    for line in recalled:
        if _ABOUT in line:
            text.append(f"\n{output.plain(line.strip())}", style="green")
    return Panel(text, title=Text(title), title_align="left")


def _next_steps(target: Target, *, stored: bool) -> str:
    steps = [
        ("your own conversation, one message a line", "hitherto replay YOURS.jsonl"),
        ("digests by a model", "HITHERTO_MODEL=gpt-4.1-mini HITHERTO_MODEL_KEY=… hitherto demo"),
    ]
    if stored:
        # The address may have a password in it.
        given = "" if target.database is None else " --database …"
        for name in ("tenant", "user", "agent"):
            if (value := getattr(target.scope, name)) != getattr(default_scope(), name):
                given += f" --{name} {output.one_line(shlex.quote(value))}"
        steps = [
            ("every message is still there", f"hitherto log {_NAME}{given}"),
            ("find what was said", f"hitherto recall 'Which cloth did we choose?'{given}"),
            ("the context of the next request", f"hitherto context {_NAME}{given} --message 'Who speaks?'"),
            *steps,
        ]
    return "\n".join(["What to try next:", *(f"  {what + ':':42} {command}" for what, command in steps)])
