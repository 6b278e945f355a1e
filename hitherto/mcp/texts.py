"""What the tools show, as text for a model: what is kept stands in a fence, each line with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any

from hitherto.core.context.expansion import LEAD, Expansion
from hitherto.core.facts.fact import Fact, Visibility
from hitherto.core.log.conversations import ConversationInfo
from hitherto.core.plain_text import NAMED_END, NAMED_RECORD, escaped, one_line
from hitherto.engine.facts.forget import ForgottenFact
from hitherto.integrations.document_tools import iso
from hitherto.integrations.memory_tools import NOTHING_LIKELY

_MENTIONS = 20
"""Messages that may mention what was forgotten, which are named at a time."""


def record(lead: str, lines: Sequence[str], more: str | None = None) -> str:
    """What is kept, between the line `lead` and a closing line that none of it can pass for, as that is made up for
    each result. Below it stands how to go on, if there is `more`."""
    end = NAMED_END.format(token_hex(4))
    return "\n".join([f"{lead} {NAMED_RECORD.format(end)}", *lines, end, *_go_on(more)])


def _go_on(more: str | None) -> list[str]:
    return [f"(More follows: go on with {more}.)"] if more else []


def hit_list(found: Mapping[str, Any]) -> str:
    """What `MemoryTools.recall` found: of each hit its score, kind, place and time, and the text below, indented."""
    lines = [
        f"- {hit['score']:.2f} {_place(hit)}{_who(hit)}, {hit['said_at']}:\n  {_indented(hit['content'])}"
        for hit in found["hits"]
    ]
    likely = not found["note"].startswith(NOTHING_LIKELY)
    return _list(NOTHING_LIKELY, lines, "What was found." if likely else NOTHING_LIKELY)


def message_page(conversation: str, page: Expansion) -> str:
    """Messages of a conversation word for word."""
    text, more = page.text.removeprefix(f"{LEAD}\n"), None
    if page.next is not None:
        text, more = text.rpartition("\n")[0], "start={}, end={}, character={}".format(*page.next)
    lead = f"From the log of conversation {one_line(conversation)}, by number."
    return record(lead, [text], more) if text else "Of these messages there is nothing to show."


def conversation_list(shown: Sequence[tuple[ConversationInfo, int]], cursor: str | None) -> str:
    """Conversations with the number of their next message."""
    lines = [
        f"- {one_line(one.conversation)}: {one_line(one.title) or '(no title)'} "
        f"({_day(one.said_at)}, {counted(messages, 'message')})"
        for one, messages in shown
    ]
    return _list("There are no conversations.", lines, "Conversations by id.", cursor and f"cursor={cursor}")


def fact_list(found: Sequence[Fact], last: int | None) -> str:
    """Facts by number, with the newest message that says each."""
    lines = [f"- fact {one.id}: [{one_line(one.category)}] {one_line(one.content)} ({_origin(one)})" for one in found]
    return _list("There are no facts.", lines, "Facts by number.", None if last is None else f"after={last}")


def forgotten(gone: ForgottenFact) -> str:
    """What went, and what may mention it still."""
    went = f"Forgotten: {counted(gone.facts, 'fact')} and {counted(gone.messages, 'message')}."
    named = gone.mentions[:_MENTIONS]
    if not named:
        return went
    lines = [
        f"- message {hit.start} of conversation {one_line(hit.conversation or '')}, {iso(hit.said_at)}" for hit in named
    ]
    lead = f"{went} What may mention it still: {len(named)} of {counted(len(gone.mentions), 'message')}."
    return f"{record(lead, lines)}\nTell the user, and call again with mentions if they are to go too."


def _list(nothing: str, lines: Sequence[str], lead: str, more: str | None = None) -> str:
    return record(lead, lines, more) if lines else "\n".join([nothing, *_go_on(more)])


def places(start: int, end: int) -> str:
    """Messages by their numbers."""
    return f"message {start}" if start == end else f"messages {start} to {end}"


def counted(number: int, what: str) -> str:
    """Such as "2 messages"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _place(hit: Mapping[str, Any]) -> str:
    if "fact" in hit:
        return f"fact {hit['fact']}"
    title = f" of document {one_line(hit['title'])!r}" if hit["kind"] == "passage" and hit.get("title") else ""
    if "conversation" not in hit:
        return f"{hit['kind']}{title}"
    at = f" from character {hit['character']}" if hit.get("character") else ""
    kind = "" if hit["kind"] == "message" else f"{hit['kind']}{title} of "
    return f"{kind}{places(hit['start'], hit['end'])} of conversation {one_line(hit['conversation'])}{at}"


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
