"""Facts and subjects as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from hitherto.cli.terminal.output import one_line
from hitherto.cli.terminal.tables import Column, day, fitted, key_width, minute, name_column, said, shortened, wide
from hitherto.core.facts.fact import Fact, FactAction, FactEvent, FactState, Subject, Visibility
from hitherto.core.log.message import Logged
from hitherto.core.scope import THE_USER


def facts_table(facts: Sequence[Fact], *, user: str, subjects: bool, agents: bool) -> Table:
    """A row for each. `subjects` and `agents` add columns for what a fact is about and which agent learned it."""
    ended = any(fact.state is not FactState.CURRENT for fact in facts)
    columns = [
        Column("id", [str(fact.id) for fact in facts], right=True),
        *([name_column("about", [_about(fact) for fact in facts], gives=5)] if subjects else []),
        name_column("category", [fact.category for fact in facts], gives=4),
        Column("fact", [Text(one_line(fact.content or "(deleted)")) for fact in facts], prose=True),
        *([name_column("agent", [fact.agent for fact in facts], gives=3)] if agents else []),
        name_column("whose", [_whose(fact, user) for fact in facts], gives=2),
        *([Column("state", [fact.state.value for fact in facts], gives=1)] if ended else []),
        *([Column("sure", [_sure(fact) for fact in facts], gives=6)] if wide() else []),
        Column("said", [_times(fact) for fact in facts], gives=7, right=True),
        Column("since", [day(fact.extracted_at) for fact in facts], gives=8),
    ]
    styles = ["" if fact.state is FactState.CURRENT else "dim" for fact in facts]
    return fitted(None, columns, styles=styles)


def fact_lines(fact: Fact, *, user: str) -> Table:
    """All fields of one fact, a line each; of somebody else's fact, those that the user may see."""
    state = fact.state.value
    if fact.ended_at is not None:
        state += f", since {minute(fact.ended_at)}"
    if fact.superseded_by is not None and fact.state is FactState.SUPERSEDED:
        state += f": fact {fact.superseded_by} took its place"
    given = f" (given as {fact.metadata['category']!r})" if "category" in fact.metadata else ""
    own = fact.user == user
    lines = {
        "category": f"{fact.category}{given}",
        "about": _about(fact),
        "whose": f"yours, {fact.visibility.value}" if own else _whose(fact, user),
        "learned by": fact.agent,
        "state": state,
    }
    if own:
        lines |= {
            "said": f"{f'{_times(fact)} times' if fact.repeated else 'once'}, since {minute(fact.extracted_at)}",
            "sure": _sure(fact),
            "version": f"{fact.version}, of {minute(fact.updated_at)}",
        }
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in lines.items():
        table.add_row(Text(name, style="bold"), Text(one_line(value)))
    return table


def sources_table(sources: Sequence[tuple[str, Logged]]) -> Table:
    """The messages that state a fact, each with its conversation."""
    texts = [f"{logged.message.role.value}: {logged.message.text}" for _, logged in sources]
    places = [one_line(f"{conversation}:{logged.seq}") for conversation, logged in sources]
    columns = [
        Column("where", places, most=key_width(), key=True),
        said([logged.said_at for _, logged in sources], gives=1),
        Column("text", [Text(shortened(text)) for text in texts], prose=True),
    ]
    return fitted("What says so", columns)


def history_table(events: Sequence[FactEvent]) -> Table:
    """What happened to a fact, and its content from then on."""
    contents = [Text(one_line(f"[{event.category}] {event.content}")) for event in events]
    columns = [
        Column("when (UTC)", [minute(event.at) for event in events], gives=3),
        Column("what", [event.action.value for event in events], gives=1),
        name_column("by", [event.by or _without_user(event) for event in events], gives=4),
        Column("version", [str(event.version) for event in events], gives=2, right=True),
        Column("fact", contents, prose=True),
    ]
    return fitted("History", columns)


def _without_user(event: FactEvent) -> str:
    return "the agent" if event.action is FactAction.REMEMBERED else "a digest"


def subjects_table(subjects: Sequence[Subject]) -> Table:
    """A row for each."""
    most = key_width()
    members = [Text(", ".join(map(one_line, subject.members))) for subject in subjects]
    columns = [
        Column("id", [one_line(subject.id) for subject in subjects], most=most, key=True),
        Column("name", [one_line(subject.name) for subject in subjects], gives=1, most=most, key=True),
        Column("members", members, prose=True),
    ]
    return fitted("Subjects", columns)


def short(fact: Fact) -> str:
    """A fact as "[category] content"."""
    return f"[{fact.category}] {fact.content}"


def _about(fact: Fact) -> str:
    """The subject's id, or the user."""
    return fact.user if fact.subject == THE_USER else fact.subject


def source_json(conversation: str, logged: Logged) -> dict[str, Any]:
    message = logged.message
    said = {"role": message.role, "said_at": logged.said_at, "text": message.text}
    return {"conversation": conversation, "seq": logged.seq, **said}


def _whose(fact: Fact, user: str) -> str:
    if fact.user != user:
        return f"of {fact.user}"
    return "shared" if fact.visibility is Visibility.SHARED else "private"


def _sure(fact: Fact) -> str:
    """The confidence, or that it is confirmed; empty for somebody else's fact."""
    return "" if fact.confidence is None else "confirmed" if fact.confirmed else f"{fact.confidence:.2f}"


def _times(fact: Fact) -> str:
    """How often it was said; empty for somebody else's fact."""
    return "" if fact.repeated is None else str(fact.repeated + 1)
