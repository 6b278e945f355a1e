"""What the tools show, as text for a model: lists in a fence, each line with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hitherto.core.facts.fact import Fact, Visibility
from hitherto.core.log.conversations import ConversationInfo
from hitherto.core.plain_text import RECORD, escaped, fenced, one_line
from hitherto.integrations.memory_tools import NOTHING_LIKELY


def hit_list(found: Mapping[str, Any]) -> str:
    """What `MemoryTools.recall` found: of each hit its score, kind, place and time, and the text below, indented."""
    lines = [
        f"- {hit['score']:.2f} {_place(hit)}{_who(hit)}, {hit['said_at']}:\n  {_indented(hit['content'])}"
        for hit in found["hits"]
    ]
    likely = not found["note"].startswith(NOTHING_LIKELY)
    return _list(NOTHING_LIKELY, lines, "What was found." if likely else NOTHING_LIKELY)


def conversation_list(shown: Sequence[tuple[ConversationInfo, int]], cursor: str | None) -> str:
    """Conversations with the number of their next message."""
    lines = [
        f"- {one_line(one.conversation)}: {one_line(one.title) or '(no title)'} "
        f"({_day(one.said_at)}, {messages:,} messages)"
        for one, messages in shown
    ]
    return _list("There are no conversations.", lines, "Conversations by id.", cursor and f"cursor={cursor}")


def fact_list(found: Sequence[Fact], last: int | None) -> str:
    """Facts by number, with the newest message that says each."""
    lines = [f"- fact {one.id}: [{one_line(one.category)}] {one_line(one.content)} ({_origin(one)})" for one in found]
    return _list("There are no facts.", lines, "Facts by number.", None if last is None else f"after={last}")


def _list(nothing: str, lines: Sequence[str], lead: str, more: str | None = None) -> str:
    text = fenced(f"{lead} {RECORD}", lines) if lines else nothing
    return f"{text}\n(More follows: go on with {more}.)" if more else text


def _place(hit: Mapping[str, Any]) -> str:
    if "fact" in hit:
        return f"fact {hit['fact']}"
    title = f" of document {one_line(hit['title'])!r}" if hit["kind"] == "passage" and hit.get("title") else ""
    if "conversation" not in hit:
        return f"{hit['kind']}{title}"
    start, end = hit["start"], hit["end"]
    seqs = f"message {start}" if start == end else f"messages {start} to {end}"
    at = f" from character {hit['character']}" if hit.get("character") else ""
    kind = "" if hit["kind"] == "message" else f"{hit['kind']}{title} of "
    return f"{kind}{seqs} of conversation {one_line(hit['conversation'])}{at}"


def _who(hit: Mapping[str, Any]) -> str:
    who = hit.get("author") or hit.get("role")
    return f", {one_line(who)}" if who else ""


def _indented(text: str) -> str:
    return "\n  ".join(escaped(text).splitlines())


def _origin(fact: Fact) -> str:
    whose = "shared" if fact.visibility is Visibility.SHARED else "personal"
    if not fact.evidence:
        return f"{whose}, {_day(fact.extracted_at)}"
    last = fact.evidence[-1]
    return f"{whose}, {_day(last.said_at)}, message {last.seq} of conversation {one_line(last.conversation)}"


def _day(at: datetime) -> str:
    return at.date().isoformat()
