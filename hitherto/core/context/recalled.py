"""Recalled content, as a context shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Literal

from hitherto.core.log.message import Message, Role, plain_message
from hitherto.core.plain_text import RECORD, escaped, fenced
from hitherto.core.prompt import json_line
from hitherto.core.recall.filter import EntryKind
from hitherto.core.recall.passages import CharRange, excerpts


class RecallReason(StrEnum):
    """What asked for it: the request, the policy's render, or the settings for other conversations."""

    REQUEST = "request"
    POLICY = "policy"
    CROSS_SESSION = "cross_session"


RecallReasonName = Literal["request", "policy", "cross_session"]


@dataclass(frozen=True, kw_only=True)
class RecalledPiece:
    """One thing recalled. `start` and `end` are the messages of `conversation` that it is or stands for; a passage of a
    document that a user added has none. `members` are a group's messages, which other messages may lie between. `here`:
    it is of the conversation that the context is of. `passage` is the passage's place in `document`; `title` is the
    document's, of anything else the one that its conversation was given. `said_at` as in `core.recall.index.Source`.
    `speaker` is as `speaker_label` gives it. `parts` are where in a group's text another
    one begins to speak, and who; without them all of it is the `speaker`'s. `passages` are those of a long text that
    match the question, the best first. `characters` are the ranges of the text that are shown, ascending; empty where
    all of it is."""

    why: RecallReason
    kind: EntryKind
    text: str
    said_at: datetime
    score: float
    conversation: str | None = None
    agent: str | None = None
    start: int | None = None
    end: int | None = None
    digest: int | None = None
    document: int | None = None
    passage: int | None = None
    title: str | None = None
    speaker: str = ""
    parts: tuple[tuple[int, str], ...] = ()
    members: tuple[int, ...] = ()
    here: bool = False
    passages: tuple[CharRange, ...] = ()
    characters: tuple[CharRange, ...] = ()

    @cached_property
    def group(self) -> tuple[str, str]:
        """The day and the place of which it is; what has the same stands under one heading."""
        where = ""
        if self.conversation is not None and not self.here:
            titled = self.title if self.title and self.kind is not EntryKind.PASSAGE else self.conversation
            where = f"conversation {json_line(titled)}"
        if self.kind is EntryKind.PASSAGE and self.conversation is None:
            where = f"document {json_line(self.title)}" if self.title else f"document {self.document}"
        return self.said_at.date().isoformat(), where

    @cached_property
    def heading(self) -> str:
        """The line above the first of its group: on which day and where it was said."""
        return escaped(", ".join(part for part in self.group if part)) + ":"

    @cached_property
    def line(self) -> str:
        """Its line: who said it, and the text or what is shown of it, whose further lines begin with ">" so that none
        of them can pass for a line of ours. A group has one for each that speaks in it."""
        what = _NOBODYS.get(self.kind, self.speaker)
        shown = excerpts(self.text, self.parts or ((0, what),), self.characters)
        return "\n".join([f"- {who}: " + "\n> ".join(escaped(text).splitlines()) for who, text in shown])

    def within(self, group: RecalledPiece) -> bool:
        """Whether it is a message by itself that the group has too."""
        same = (self.kind, self.agent, self.conversation) == (group.kind, group.agent, group.conversation)
        return same and not self.members and self.start in group.members

    def sums_up(self, one: RecalledPiece) -> bool:
        """Whether it is a digest or an archive of that message, among others, of another conversation."""
        same = (self.agent, self.conversation) == (one.agent, one.conversation)
        if self.here or not same or self.kind is EntryKind.MESSAGE or one.kind is not EntryKind.MESSAGE:
            return False
        return one.start is not None and (self.start or 0) <= one.start <= (self.end or 0)

    def takes(self, room: int, count: Callable[[str], int]) -> int | None:
        """The tokens of its line; None if they are more than `room`. Takes time that goes by the room, not by the
        length of the text."""
        if sum(end - start for start, end in self.characters or [(0, len(self.text))]) > _LONG * room:
            return None
        tokens = count(self.line)
        return tokens if tokens <= room else None

    def cut(self, room: int, count: Callable[[str], int]) -> RecalledPiece | None:
        """The piece with as many of its `passages` as fit into `room` tokens; None if not even the best one does. Takes
        time that goes by the room, not by the length of the text."""
        left = room - count(replace(self, text="", parts=(), characters=()).line)
        chosen: list[CharRange] = []
        for start, end in self.passages:
            takes = count(self.text[start:end]) + _BETWEEN if end - start <= _LONG * room else room + 1
            if takes <= left:
                chosen.append((start, end))
                left -= takes
            elif not chosen:
                return None
        while chosen:
            cut = replace(self, characters=tuple(sorted(chosen)))
            if count(cut.line) <= room:
                return cut
            chosen.pop()
        return None


_NOBODYS = {EntryKind.DIGEST: "summary", EntryKind.PASSAGE: "passage"}
"""What stands in a speaker's place."""

_LONG = 20
"""A text of more characters than this for each token of the room is taken not to fit, and not counted."""

_BETWEEN = 4
"""Tokens that a passage takes beside its text, for what is left out around it and for its indentation."""


LEAD = f"Recalled from earlier, because it may bear on what comes next. {RECORD}"


def as_message(recollections: Sequence[RecalledPiece]) -> Message:
    """All pieces as one message, to stand ahead of the incoming one: by day and place, in order of time, between the
    lines of a fence. It is a user message: what others said must not have the authority of instructions."""
    ordered = sorted(((one.group, one.said_at, one.start or 0, at) for at, one in enumerate(recollections)))
    lines: list[str] = []
    above: tuple[str, str] | None = None
    for group, _, _, at in ordered:
        if group != above:
            lines.append(recollections[at].heading)
        lines.append(recollections[at].line)
        above = group
    return plain_message(Role.USER, fenced(LEAD, lines))
