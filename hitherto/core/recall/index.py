"""What a search index takes and gives.

An index has entries for each message, digest, passage of a document, and fact that can be found: one, or for a long
text one for each of its passages (`core.recall.passages`). Entries are numbered within their scope (those of documents
that belong to no agent are in a scope of their own, whose agent is ""), those of one text one after another. They are
made in the background from a `Source`; until then, the source is `waiting`. A scope is indexed by one process at a
time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from hitherto.arrays import NDArray, np
from hitherto.core.documents import has
from hitherto.core.log.ranges import Ranges
from hitherto.core.recall.filter import EntryKind, SearchFilter
from hitherto.core.recall.terms import TermCounts
from hitherto.core.recall.vectors import Space, Vector

Key = tuple[int, int]
"""An entry: its scope's number, and its own in that scope."""

MessagePlace = tuple[int, int]
"""A message: its conversation's number, and its seq."""

OF_NO_AGENT = ""
"""The agent of what belongs to a user and no agent; no agent can have this name."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What entries are made of. `origin` is the number of its conversation, document or fact; `place` is a message's
    seq, a digest's id, a passage's place in its document, or 0 for a fact. With `kind`, these identify it within the
    tenant.

    It stands for the messages `start` to `end` of `conversation`; a fact, and a passage of a document that was not
    archived from one, has none of the three. `said_at` is when it was said: of a digest and an archived document, when
    the last of its messages was; of a fact, when the newest message that says it was, else when it was added. `subject`
    is what it, or its conversation, is about. `author` is the name its speaker goes by, if one was given. Of a passage,
    `title`, `doc_type`, `namespace` and `metadata` (JSON text) are those of its document; of a message or a digest,
    `title` is the one that its conversation was given. `private`: its conversation is.
    """

    kind: EntryKind
    origin: int
    place: int
    text: str
    said_at: datetime
    conversation: str | None = None
    start: int | None = None
    end: int | None = None
    role: str | None = None
    author: str | None = None
    agent: str = OF_NO_AGENT
    title: str | None = None
    doc_type: str | None = None
    namespace: str | None = None
    metadata: str = "{}"
    subject: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBlock:
    """Entries `first`, `first` + 1, … of the scope with the number `scope`, in columns of one length.

    `kinds` are `core.recall.filter.CODES`, plus `FURTHER` for the second and further entries of a source, and 0 where
    there is no entry (any more). `origins`, `places` and `times`
    (seconds of the epoch) are as in `Source`, and None where they were not asked for. `postings` have, for each term
    that was asked for, the offsets (from `first`, ascending) of the entries with it, and how often it is in each, at
    most 255 times. `codes` are the entries' vectors in short, for the first stage (`core.recall.codes.codes_of`);
    `coded` says which entries have one. Entries that no longer exist may still have postings and codes.
    """

    scope: int
    first: int
    lengths: NDArray[np.uint16]
    kinds: NDArray[np.uint8]
    postings: Mapping[int, tuple[NDArray[np.uint16 | np.uint32], NDArray[np.uint8]]]
    origins: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None
    times: NDArray[np.float64] | None = None
    codes: NDArray[np.uint8] | None = None
    coded: NDArray[np.bool_] | None = None


class Relative(NamedTuple):
    """A conversation that has messages together with one that a search names, whose number is `own`: those up to
    `through`, of which that one shows `shown`. They, and digests of them, are searched as its own. `digests` has those
    with an entry, each with the copy that it uses, None where it uses none."""

    own: int
    through: int
    shown: Ranges
    digests: dict[int, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchData:
    """The data of a search's first stage: everything within `SearchFilter.scope`, but otherwise not yet filtered.
    `waiting` are the newest sources without an entry, filtered by kind. `space` is the space of the codes, None where
    nothing is embedded in any that was asked for; `embedded` of `entries` entries have a vector in it. `refs` are the
    numbers of the conversations that `SearchFilter` names, as far as they exist, and `relatives` those that have
    messages of them too; `about` those of the conversations about its subject, ascending, None where it names none.
    `unseen` has, by kind and origin, the place from which on nothing is searched: what is private or came later than
    `SearchFilter.until`. `due`: messages of the tenant wait to be erased, and what rests on them is left out."""

    blocks: tuple[IndexBlock, ...] = ()
    waiting: tuple[Source, ...] = ()
    space: Space | None = None
    entries: int = 0
    embedded: int = 0
    refs: Mapping[str, int] = field(default_factory=dict[str, int])
    relatives: Mapping[int, Relative] = field(default_factory=dict[int, Relative])
    about: tuple[int, ...] | None = None
    unseen: Mapping[EntryKind, Mapping[int, int]] = field(default_factory=dict[EntryKind, Mapping[int, int]])
    due: bool = False

    @property
    def size(self) -> int:
        """How many places for entries the blocks have."""
        return sum(len(block.lengths) for block in self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """An entry to be written: the passage of a source's text from `start` to `end` (exclusive, in characters), and its
    terms."""

    start: int
    end: int
    terms: TermCounts


@dataclass(frozen=True, kw_only=True)
class IndexedPassage:
    """An entry of a candidate, by its number: the passage from `start` to `end` of its text. `vector` is None where it
    has none in the space asked for."""

    no: int
    start: int
    end: int
    vector: Vector | None = None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A source that may be a hit, as it stands now, with its entries: its passages, in their order. `scope` is the
    number of theirs. `source.text` is cut after `TEXT` characters."""

    scope: int
    source: Source
    passages: tuple[IndexedPassage, ...]

    @property
    def key(self) -> Key:
        """Its first entry."""
        return (self.scope, self.passages[0].no)


TEXT = 20_000
"""Characters of a candidate's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unembedded:
    """An entry without a vector in a space: its number and text."""

    no: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWork:
    """A claim on the index of a scope (`tenant`, `user`, `agent`; its number is `ref`), and a batch of the work there:
    sources without an entry (oldest first), and entries without a vector. `embedded_to`: once these have a vector, all
    entries below it have one. `seen` is the store's own note of where it looked for sources, most of which may not
    belong in an index; unless it is empty, `add` must be called, without sources too. `untidy` asks for
    `compact_index`."""

    tenant: str
    user: str = ""
    agent: str = OF_NO_AGENT
    ref: int
    attempt: int
    sources: tuple[Source, ...] = ()
    unembedded: tuple[Unembedded, ...] = ()
    embedded_to: int = 0
    seen: tuple[tuple[str, int, int, int], ...] = ()
    untidy: bool = False

    @property
    def done(self) -> bool:
        """Whether there is nothing to be done (for now)."""
        return not (self.sources or self.unembedded or self.seen or self.untidy)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBacklog:
    """The index backlog of all tenants or one: how many scopes have sources that wait for an entry, and how many have
    entries that wait for a vector, in any space that is being filled. `untidy` have parts that are to be rebuilt
    without what was removed."""

    waiting: int = 0
    unembedded: int = 0
    untidy: int = 0


def keeps(source: Source, criteria: SearchFilter) -> bool:
    """Whether a source, as it is now, passes the filter."""
    if source.kind not in criteria.kinds or criteria.subject not in (None, source.subject):
        return False
    if criteria.of_documents and not _of_document(source, criteria):
        return False
    # The filter names conversations of the scope's own agent; another agent's may have the same name.
    name, last = source.conversation if source.agent == criteria.scope.agent else None, source.end
    if criteria.conversation not in (None, name) or (name is not None and name == criteria.exclude_conversation):
        return False
    hidden = source.private and criteria.conversation is None
    if criteria.as_of is not None and (last is None or last > criteria.as_of):
        return False
    # A digest is hidden where all of its messages are; anything else where one of them is.
    at = source.start if source.kind is EntryKind.DIGEST else last
    hidden = hidden or (at is not None and name is not None and at >= criteria.hidden.get(name, at + 1))
    if hidden or (source.kind is EntryKind.DIGEST and source.place in criteria.but):
        return False
    after, before = criteria.after, criteria.before
    return (after is None or source.said_at >= after) and (before is None or source.said_at <= before)


def matching(
    found: Iterable[Candidate],
    criteria: SearchFilter,
    keys: Sequence[Key],
    *,
    around: int,
    beside: Iterable[MessagePlace],
) -> list[Candidate]:
    """What `SearchIndex.candidates` returns, out of the candidates that the store has found for `keys` and around
    them."""
    kept = [one for one in found if keeps(one.source, criteria)]
    return with_neighbors(kept, keys, around=around, beside=beside)


def with_neighbors(
    found: Sequence[Candidate], keys: Iterable[Key], *, around: int, beside: Iterable[MessagePlace] = ()
) -> list[Candidate]:
    """Those with an entry of `keys`, and the messages at most `around` seqs from the messages among these and from
    those at `beside`."""
    asked = set(keys)
    named = {id(one) for one in found for entry in one.passages if (one.scope, entry.no) in asked}
    places = {
        (one.source.origin, one.source.place)
        for one in found
        if id(one) in named and one.source.kind is EntryKind.MESSAGE
    }
    near = {(origin, place + apart) for origin, place in places.union(beside) for apart in range(-around, around + 1)}
    return [
        one
        for one in found
        if id(one) in named or (one.source.kind is EntryKind.MESSAGE and (one.source.origin, one.source.place) in near)
    ]


def _of_document(source: Source, criteria: SearchFilter) -> bool:
    return (
        source.kind is EntryKind.PASSAGE
        and criteria.doc_type in (None, source.doc_type)
        and criteria.namespace in (None, source.namespace)
        and (not criteria.metadata or has(json.loads(source.metadata), criteria.metadata))
    )
