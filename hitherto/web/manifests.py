"""A manifest in words: what became of messages, what was recalled, which facts are shown, what was missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from hitherto.core.context.manifest import Manifest, RecalledEntry
from hitherto.core.log.message import Logged
from hitherto.core.policy.span import Fate, Reason, Span

ORIGINS = {
    "request": "named by the request",
    "conversation": "set for this conversation",
    "agent": "the agent's",
    "memory": "the default of this memory",
    "default": "nobody set another",
}
"""Whose policy it is."""

SECTIONS = {
    "instructions": "Instructions",
    "tools": "Tools",
    "rules": "System messages of the log",
    "injection": "Another conversation's digest",
    "facts": "Facts",
    "digest": "Digest",
    "verbatim": "Word for word",
    "recalled": "Recalled",
    "incoming": "Incoming message",
    "framing": "Roles and separators around messages",
}
"""Sections of a request, in the order of the bar."""

REASONS = {
    Reason.RULES: "a system message at the beginning of the conversation",
    Reason.BEGINNING: "the conversation's first user message",
    Reason.CALL_OF_INCOMING: "the call that the incoming result answers",
    Reason.COMPACTED: "in an item that only its provider can read",
    Reason.TRIMMED: "by a stage of the policy",
    Reason.RETRACTED: "undone, or on another branch",
    Reason.CALL_NOT_IN: "the call that it answers is not sent",
    Reason.RECALLED: "as it bears on the question",
}
"""Reasons of fates that read better in other words than a manifest's."""

MISSING = {
    "digest": "a digest failed or was put off",
    "embedder": "the embedder was not available, so only words were compared",
    "index": "much waits to be indexed, and only the newest of it was searched",
    "policy": "this process cannot read stages of the policy",
    "reranker": "the reranker was not available",
    "vectors": "not all is embedded yet, and the rest was searched by its words",
}
"""What `missing` of a manifest or a search names."""


def why(reason: Reason) -> str:
    """Why messages have their fate."""
    return REASONS.get(reason, reason.value)


@dataclass(frozen=True)
class FateLine:
    """All messages of one fate for one reason: how many, their tokens, and their ranges."""

    fate: Fate
    reason: Reason
    messages: int
    tokens: int
    spans: list[Span]


def fate_lines(fates: Iterable[Span]) -> list[FateLine]:
    """The fates by reason, in the order of the log."""
    found: dict[tuple[Fate, Reason], list[Span]] = {}
    for span in fates:
        found.setdefault((span.fate, span.reason), []).append(span)
    return [
        FateLine(fate, reason, sum(one.end - one.start + 1 for one in spans), sum(one.tokens for one in spans), spans)
        for (fate, reason), spans in found.items()
    ]


@dataclass(frozen=True)
class Became:
    """What became of a message in a request: its fate, "" for one that was said since, and that in words."""

    fate: str = ""
    words: str = ""


def became(logged: Logged, manifest: Manifest) -> Became:
    """What became of a message of the log in the request of a manifest."""
    span = span_of(manifest.fates, logged.seq)
    if span is None:
        return (
            Became(Fate.IN, "in: asked with this request") if came_with(logged, manifest) else Became("", "said since")
        )
    sought = Sought(of=manifest.conversation, seq=logged.seq)
    excerpt = span.fate is Fate.RECALLED and any(one.characters for one in sought.among(manifest.recalled))
    return Became(span.fate, f"{span.fate}: {'an excerpt, ' if excerpt else ''}{why(span.reason)}")


def came_with(logged: Logged, manifest: Manifest) -> bool:
    """Whether the request had a message of the log, which was appended with it or later, as an incoming one."""
    later = logged.seq >= manifest.next_seq
    return later and not logged.erased and any(raw == logged.message.raw for _, raw in manifest.request.incoming)


def span_of(fates: Sequence[Span], seq: int) -> Span | None:
    """The span of a message among those of a manifest."""
    at = bisect_right(fates, seq, key=lambda span: span.start) - 1
    return fates[at] if at >= 0 and fates[at].end >= seq else None


class Sought(BaseModel):
    """Something that a search found, of which a page says whether a context shows it: a message, a digest or a passage
    of conversation `of`, a passage of a `document`, or a fact."""

    of: str = ""
    seq: int | None = None
    digest: int | None = None
    document: int | None = None
    passage: int | None = None
    fact: int | None = None

    @property
    def there(self) -> bool:
        """Whether anything is sought."""
        return (self.seq, self.digest, self.document, self.fact) != (None,) * 4

    def among(self, entries: Sequence[RecalledEntry]) -> list[RecalledEntry]:
        """Those of these that are it, or that it is a part of."""
        return [one for one in entries if self._is(one)]

    def _is(self, entry: RecalledEntry) -> bool:
        if self.document is not None:
            return (entry.document, entry.passage) == (self.document, self.passage)
        if self.digest is not None:
            return entry.digest == self.digest
        inside = self.seq is not None and entry.start is not None and entry.start <= self.seq <= (entry.end or 0)
        return inside and entry.kind == "message" and entry.conversation == self.of


def what_became(sought: Sought, manifest: Manifest, logged: Logged | None = None) -> tuple[bool, str]:
    """Whether the context of a manifest shows it, and why, or why not. `logged` is the message that is sought, if it is
    one of the context's conversation."""
    if sought.fact is not None:
        return _of_fact(sought.fact, manifest)
    if recalled := sought.among(manifest.recalled):
        excerpt = all(one.characters for one in recalled)
        return True, "an excerpt of it was recalled for the question" if excerpt else "it was recalled for the question"
    if sought.digest is not None and sought.digest == manifest.digest:
        return True, "it is the digest that stands for the older part"
    own = sought.seq is not None and sought.digest is None and sought.of == manifest.conversation
    span = span_of(manifest.fates, sought.seq) if own and sought.seq is not None else None
    if span is not None and span.fate is not Fate.DROPPED:
        return span.fate is not Fate.DIGESTED, f"{span.fate}: {why(span.reason)}"
    if logged is not None and came_with(logged, manifest):
        return True, "it was asked with this request"
    return False, _not_shown(sought, manifest, span, own)


def _not_shown(sought: Sought, manifest: Manifest, span: Span | None, own: bool) -> str:
    if sought.among(manifest.left_out):
        return "it was found for the question, but there was no room for it"
    if span is not None:
        return f"{span.fate}: {why(span.reason)}, and it was not recalled"
    return "it was said later" if own else "it was not among what was recalled"


def _of_fact(fact: int, manifest: Manifest) -> tuple[bool, str]:
    facts = manifest.facts
    if facts is None:
        return False, "no facts are shown in it"
    shown = [*facts.shown, *facts.newer]
    if any(one.fact == fact for one in shown):
        return True, "it is among the known facts"
    about = f"known facts about {facts.name} are shown, and it is not among them"
    return (
        False,
        f"{len(shown):,} of {facts.known:,} {about}; one about something else is shown in conversations about it",
    )
