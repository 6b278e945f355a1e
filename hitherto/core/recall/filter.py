"""Search filters: which entries of the search index a recall looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from hitherto.core.scope import Scope


class EntryKind(StrEnum):
    """What an entry of the search index is a piece of."""

    MESSAGE = "message"
    DIGEST = "digest"
    PASSAGE = "passage"
    FACT = "fact"


EntryKindName = Literal["message", "digest", "passage", "fact"]

CODES = {kind: number for number, kind in enumerate(EntryKind, 1)}
"""Kinds as small numbers, in packed columns; 0 is nothing."""

FURTHER = 128
"""Added to the kind, in packed columns, of an entry that is a further passage of the same source as the entry before
it."""


UNLIKELY = 0.05
"""The score below which a hit is so unlikely to help that it is not shown, unless it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which entries are searched: those of `scope` alone, with `all_agents` also those of the same user's other agents.

    Conversations are named as the scope's own agent has them. `conversation` leaves only what belongs to that one,
    `exclude_conversation` all but it; archived documents belong to the conversation they came from. `after` and
    `before` bound the time at which it was said, both inclusive. `as_of`: only what rests on messages of `conversation`
    up to that seq. `hidden` maps conversations to a seq: nothing that rests on a message from that seq on, except a
    digest of earlier ones too. `but`: not these digests. `doc_type`, `namespace` and `metadata` leave only passages of
    documents that have that type, that namespace and every entry. `subject`: only facts about it, and what belongs to
    conversations about it. What belongs to a private conversation is searched only where `conversation` is that one.
    `until`: nothing that rests on a message that was appended later, and no document that was added later.
    `keeps` in `core.recall.index` applies them.
    """

    scope: Scope
    all_agents: bool = False
    kinds: frozenset[EntryKind] = frozenset(EntryKind)
    conversation: str | None = None
    exclude_conversation: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    as_of: int | None = None
    hidden: Mapping[str, int] = field(default_factory=dict[str, int])
    but: frozenset[int] = frozenset()
    doc_type: str | None = None
    namespace: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    subject: str | None = None
    until: datetime | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The conversations that it names."""
        named = (self.conversation, self.exclude_conversation, *self.hidden)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def of_documents(self) -> bool:
        """Whether it filters by properties of documents."""
        return self.doc_type is not None or self.namespace is not None or bool(self.metadata)

    @property
    def needs_origin_columns(self) -> bool:
        """Whether the entries' origins and times have to be looked at."""
        bounds = (self.after, self.before, self.until)
        return bool(self.names) or self.subject is not None or any(bound is not None for bound in bounds)
