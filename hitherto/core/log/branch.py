"""Branches of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hitherto.core.log.message import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One of the ways on from message `parent` (-1: the beginning). `seq` is its first message, by which
    `Conversation.switch` goes there; `last` is the newest message that was shown when it was shown last. `text` is the
    beginning of its first message, which `role` said at `said_at`; "" where that was erased. `shown`: it is the present
    one."""

    parent: int
    seq: int
    last: int
    role: Role
    text: str
    said_at: datetime
    shown: bool
