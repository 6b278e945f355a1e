"""How the commands for facts show them: as tables and lines for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from hitherto.cli.tables import WIDE, cut, numbers, table_of
from hitherto.cli.terminal import one_line, plain
from hitherto.core.fact import HIMSELF, Fact, FactEvent, FactState, Subject, Visibility
from hitherto.core.message import Logged

Sources = Sequence[tuple[str, Logged]]
"""Messages, each with the name of its conversation."""

_SHOWN = 300
"""Characters of a message that people are shown; --json has it whole."""

_LONGEST_NAME = 16


def facts_table(facts: Sequence[Fact], *, user: str, width: int, subjects: bool, agents: bool) -> Table:
    """A row each. `subjects` and `agents` say whether there are columns for what they are about and who learnt them."""
    wide, ended = width >= WIDE, any(one.state is not FactState.CURRENT for one in facts)
    table = table_of(None)
    numbers(table, "id")
    for name in (["about"] if subjects else []) + ["category"]:
        table.add_column(name, no_wrap=True, max_width=_LONGEST_NAME, overflow="ellipsis")
    table.add_column("fact", ratio=1)
    for name in (["agent"] if agents else []) + ["whose"]:
        table.add_column(name, no_wrap=True, max_width=_LONGEST_NAME, overflow="ellipsis")
    for name in (["state"] if ended else []) + (["sure"] if wide else []):
        table.add_column(name, no_wrap=True)
    numbers(table, "said")
    table.add_column("since", no_wrap=True)
    for one in facts:
        table.add_row(
            str(one.id),
            *([cut(about(one))] if subjects else []),
            cut(one.category),
            Text(one_line(one.content or "(deleted)")),
            *([cut(one.agent)] if agents else []),
            cut(_whose(one, user)),
            *([one.state.value] if ended else []),
            *([_sure(one) if one.user == user else ""] if wide else []),
            str(one.repeated + 1) if one.user == user else "",
            _day(one.extracted_at),
            style="" if one.state is FactState.CURRENT else "dim",
        )
    return table


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
        "said": f"{'once' if not fact.repeated else f'{fact.repeated + 1} times'}, since {_minute(fact.extracted_at)}",
        "sure": _sure(fact),
        "version": f"{fact.version}, of {_minute(fact.updated_at)}",
    }
    if fact.user != user:  # nobody else is told
        lines = {name: said for name, said in lines.items() if name not in ("said", "sure", "version")}
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, said in lines.items():
        table.add_row(Text(name, style="bold"), Text(one_line(said)))
    return table


def sources_table(sources: Sources) -> Table:
    """The messages that say a fact."""
    table = table_of("What says so")
    table.add_column("where", no_wrap=True, max_width=2 * _LONGEST_NAME, overflow="ellipsis")
    table.add_column("said (UTC)", no_wrap=True)
    table.add_column("text", ratio=1)
    for conversation, logged in sources:
        text = plain(logged.message.text)
        shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        place = cut(f"{conversation}:{logged.seq}")
        table.add_row(place, _day(logged.created_at), Text(f"{logged.message.role.value}: {shown}"))
    return table


def history_table(events: Iterable[FactEvent]) -> Table:
    """What happened to a fact, and how it read from then on."""
    table = table_of("History")
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("by", no_wrap=True, max_width=_LONGEST_NAME, overflow="ellipsis")
    numbers(table, "version")
    table.add_column("fact", ratio=1)
    for event in events:
        reads = f"[{event.category}] {event.content}"
        table.add_row(
            _minute(event.at), event.did.value, cut(event.by or "a digest"), str(event.version), Text(one_line(reads))
        )
    return table


def subjects_table(subjects: Iterable[Subject]) -> Table:
    """A row each."""
    table = table_of("Subjects")
    table.add_column("id", no_wrap=True, max_width=2 * _LONGEST_NAME, overflow="ellipsis")
    table.add_column("name", no_wrap=True, max_width=2 * _LONGEST_NAME, overflow="ellipsis")
    table.add_column("members", ratio=1)
    for one in subjects:
        table.add_row(cut(one.id), cut(one.name), Text(one_line(", ".join(one.members))))
    return table


def about(fact: Fact) -> str:
    """What it is about, in a word: the subject's id, or the user."""
    return fact.user if fact.subject == HIMSELF else fact.subject


def fact_json(fact: Fact, *, user: str) -> dict[str, Any]:
    """A fact as the user is told of it; of another's, some is nobody else's business."""
    told = _whole_json(fact)
    hidden = () if fact.user == user else ("confidence", "confirmed", "repeated", "updated_at")
    return {name: None if name in hidden else value for name, value in told.items()}


def _whole_json(fact: Fact) -> dict[str, Any]:
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
    return "confirmed" if fact.confirmed else f"{fact.confidence:.2f}"


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
