"""What users see of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitherto.core.log.message import Logged, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """A message of a user, or an assistant's answer, as a page shows it. `text` are its words; `attachments` its
    pictures and files, each as its API has it. `partial`: it broke off. `id` is its own, see `Message`.

    `Conversation.turn` with this `at` puts something else in its place: another answer, or what another question leads
    to. It is None for an answer that no user's message is shown before.

    Where something else has been in its place, this is way `branch` (from 1) of `branches`. It begins with message
    `branch_seq`, for an answer may begin with the calls of its tools; `Conversation.branches(branch_seq)` lists the
    ways. The ways beside it begin with the messages `earlier` and `later`, to which `Conversation.switch` goes; None
    where there is none."""

    seq: int
    role: Role
    text: str
    said_at: datetime
    attachments: tuple[dict[str, Any], ...] = ()
    partial: bool = False
    at: int | None = None
    branch: int = 1
    branches: int = 1
    branch_seq: int | None = None
    earlier: int | None = None
    later: int | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """A page of a conversation's log. `next` is the seq from which on the page after it is read; None at the end."""

    messages: list[Logged]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A page of what users see of a conversation, in its order, at its revision `rev`, which `expect` takes. `before`
    is where the page before this one goes on; None at the beginning."""

    entries: tuple[TranscriptEntry, ...]
    rev: int
    before: int | None
