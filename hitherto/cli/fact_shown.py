"""How the commands for facts show them: as tables and lines for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from hitherto.cli.tables import WIDE, Column, cut, fitted, shortened
from hitherto.cli.terminal import one_line
from hitherto.core.fact import HIMSELF, Fact, FactEvent, FactState, Subject, Visibility
from hitherto.core.message import Logged

Sources = Sequence[tuple[str, Logged]]
"""Messages, each with the name of its conversation."""

_LONGEST_NAME = 16


def facts_table(facts: Sequence[Fact], *, user: str, width: int, subjects: bool, agents: bool) -> Table:
    """A row each. `subjects` and `agents` say whether there are columns for what they are about and who learnt them."""
    wide, ended = width >= WIDE, any(one.state is not FactState.CURRENT for one in facts)
    columns = [
        Column(name="id", cells=[str(one.id) for one in facts], right=True),
        *([_name("about", [about(one) for one in facts], gives=5)] if subjects else []),
        _name("category", [one.category for one in facts], gives=4),
        Column(name="fact", cells=[Text(one_line(one.content or "(deleted)")) for one in facts], prose=True),
        *([_name("agent", [one.agent for one in facts], gives=3)] if agents else []),
        _name("whose", [_whose(one, user) for one in facts], gives=2),
        *([Column(name="state", cells=[one.state.value for one in facts], gives=1)] if ended else []),
        *([Column(name="sure", cells=[_sure(one) for one in facts], gives=6)] if wide else []),
        Column(name="said", cells=[_times(one) for one in facts], gives=7, right=True),
        Column(name="since", cells=[_day(one.extracted_at) for one in facts], gives=8),
    ]
    styles = ["" if one.state is FactState.CURRENT else "dim" for one in facts]
    return fitted(None, columns, width=width, styles=styles)


def _name(heading: str, names: Sequence[str], *, gives: int) -> Column:
    return Column(name=heading, cells=[cut(one) for one in names], gives=gives, most=_LONGEST_NAME)


def fact_lines(fact: Fact, *, user: str) -> Table:
    """All there is to say of one fact, a line each."""
    state = fact.state.value
    if fact.ended_at is not None:
        state += f", since {_minute(fact.ended_at)}"
    if fact.superseded_by is not None and fact.state is FactState.SUPERSEDED:
        state += f": fact {fact.superseded_by} took its place"
    metadata = json.loads(fact.metadata)
    given = f" (given as {metadata['category']!r})" if isinstance(metadata, dict) and "category" in metadata else ""
    lines = {
        "category": f"{fact.category}{given}",
        "about": about(fact),
        "whose": _whose(fact, user) if fact.user != user else f"yours, {fact.visibility.value}",
        "learnt by": fact.agent,
        "state": state,
        "said": f"{f'{_times(fact)} times' if fact.repeated else 'once'}, since {_minute(fact.extracted_at)}",
        "sure": _sure(fact),
        "version": f"{fact.version}, of {_minute(fact.updated_at)}",
    }
    if fact.user != user:  # nobody else is told
        lines = {name: said for name, said in lines.items() if name not in ("said", "sure", "version")}
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, said in lines.items():
        table.add_row(Text(name, style="bold"), Text(one_line(said)))
    return table


def sources_table(sources: Sources, *, width: int) -> Table:
    """The messages that say a fact."""
    texts = [f"{logged.message.role.value}: {logged.message.text}" for _, logged in sources]
    places = [one_line(f"{conversation}:{logged.seq}") for conversation, logged in sources]
    columns = [
        Column(name="where", cells=places, most=_of_key(width), key=True),
        Column(name="said (UTC)", cells=[_day(logged.created_at) for _, logged in sources], gives=1),
        Column(name="text", cells=[Text(shortened(text)) for text in texts], prose=True),
    ]
    return fitted("What says so", columns, width=width)


def history_table(events: Sequence[FactEvent], *, width: int) -> Table:
    """What happened to a fact, and how it read from then on."""
    reads = [Text(one_line(f"[{event.category}] {event.content}")) for event in events]
    columns = [
        Column(name="when (UTC)", cells=[_minute(event.at) for event in events], gives=3),
        Column(name="what", cells=[event.did.value for event in events], gives=1),
        _name("by", [event.by or "a digest" for event in events], gives=4),
        Column(name="version", cells=[str(event.version) for event in events], gives=2, right=True),
        Column(name="fact", cells=reads, prose=True),
    ]
    return fitted("History", columns, width=width)


def subjects_table(subjects: Sequence[Subject], *, width: int) -> Table:
    """A row each."""
    most = _of_key(width)
    columns = [
        Column(name="id", cells=[one_line(one.id) for one in subjects], most=most, key=True),
        Column(name="name", cells=[one_line(one.name) for one in subjects], gives=1, most=most, key=True),
        Column(name="members", cells=[Text(", ".join(map(one_line, one.members))) for one in subjects], prose=True),
    ]
    return fitted("Subjects", columns, width=width)


def _of_key(width: int) -> int:
    """The room for what tells a row from others: never a column's whole, where that is narrow."""
    return min(2 * _LONGEST_NAME, max(width // 3, 1))


def about(fact: Fact) -> str:
    """What it is about, in a word: the subject's id, or the user."""
    return fact.user if fact.subject == HIMSELF else fact.subject


def fact_json(fact: Fact) -> dict[str, Any]:
    """A fact as the user is told of it."""
    return {
        "id": fact.id,
        "user": fact.user,
        "agent": fact.agent,
        "subject": fact.subject,
        "category": fact.category,
        "content": fact.content,
        "visibility": fact.visibility.value,
        "state": fact.state.value,
        "confidence": fact.confidence,
        "confirmed": fact.confirmed,
        "repeated": fact.repeated,
        "version": fact.version,
        "extracted_at": fact.extracted_at.isoformat(),
        "updated_at": fact.updated_at.isoformat(),
        "ended_at": None if fact.ended_at is None else fact.ended_at.isoformat(),
        "superseded_by": fact.superseded_by,
        "evidence": [
            {"conversation": one.conversation, "seq": one.seq, "said_at": one.said_at.isoformat()}
            for one in fact.evidence
        ],
        "metadata": json.loads(fact.metadata),
    }


def source_json(conversation: str, logged: Logged) -> dict[str, Any]:
    message = logged.message
    return {
        "conversation": conversation,
        "seq": logged.seq,
        "role": message.role.value,
        "said_at": logged.created_at.isoformat(),
        "text": message.text,
    }


def event_json(event: FactEvent) -> dict[str, Any]:
    return {
        "did": event.did.value,
        "at": event.at.isoformat(),
        "by": event.by,
        "version": event.version,
        "category": event.category,
        "content": event.content,
        "visibility": event.visibility.value,
    }


def subject_json(subject: Subject) -> dict[str, Any]:
    return {"id": subject.id, "name": subject.name, "members": list(subject.members)}


def _whose(fact: Fact, user: str) -> str:
    if fact.user != user:
        return f"of {fact.user}"
    return "shared" if fact.visibility is Visibility.SHARED else "private"


def _sure(fact: Fact) -> str:
    """Nothing where it is somebody else's, of which nobody is told."""
    return "" if fact.confidence is None else "confirmed" if fact.confirmed else f"{fact.confidence:.2f}"


def _times(fact: Fact) -> str:
    """How often it was said."""
    return "" if fact.repeated is None else str(fact.repeated + 1)


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
