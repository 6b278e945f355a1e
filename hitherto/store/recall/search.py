"""Unpacks the rows that a search reads from the index: packed columns to blocks, and rows to sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitherto.core.log.ranges import Ranges
from hitherto.core.log.speaker import author_in
from hitherto.core.log.time_zone import with_offset
from hitherto.core.recall.filter import CODES, FURTHER, EntryKind, SearchFilter
from hitherto.core.recall.index import TEXT, Candidate, IndexBlock, IndexedPassage, Relative, Source
from hitherto.core.recall.vectors import Space
from hitherto.frozen import build

SEGMENT = 4_096
"""Entries of a segment. Segments are stored in this size: another one needs a migration."""

KINDS = {number: kind for kind, number in CODES.items()}

Row = Sequence[Any]


def filter_values(criteria: SearchFilter) -> dict[str, Any]:
    """What the statements of a search bind: the scope for `hitherto.within`, and the kinds."""
    scope = criteria.scope
    return {
        "tenant": scope.tenant,
        "user": scope.user,
        "agent": scope.agent,
        "all_agents": criteria.all_agents,
        "named": criteria.conversation,
        "until": criteria.until,
        "kinds": [CODES[kind] for kind in criteria.kinds],
        "text": TEXT,
    }


def space_values(spaces: Sequence[Space]) -> dict[str, Any]:
    return {"names": [one.name for one in spaces], "dimensions": [one.dimensions for one in spaces]}


_Postings = dict[int, tuple[NDArray[np.uint16 | np.uint32], NDArray[np.uint8]]]
_Loose = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""The numbers of entries whose codes are in no segment, and their codes."""


def blocks_from(
    terms: Sequence[int], segments: Iterable[Row], postings: Iterable[Row], tails: Iterable[Row], codes: Iterable[Row]
) -> tuple[IndexBlock, ...]:
    """The blocks of all scopes that are searched: one for each segment, and one for the entries of a scope that are in
    none."""
    found: dict[tuple[int, int], _Postings] = {}
    for scope, segment, term, offsets, counts in postings:
        found.setdefault((scope, segment), {})[term] = (np.frombuffer(offsets, "<u2"), np.frombuffer(counts, np.uint8))
    packed: dict[tuple[int, int], NDArray[np.uint8]] = {}
    loose: dict[int, tuple[NDArray[np.int64], NDArray[np.uint8]]] = {}
    for _, _, _, scope, segment, nos, bits in codes:
        if segment is None:
            numbers = np.frombuffer(nos, ">i8").astype(np.int64)
            loose[scope] = numbers, np.frombuffer(bits, np.uint8).reshape(len(numbers), -1)
        else:
            packed[scope, segment] = np.frombuffer(bits, np.uint8).reshape(SEGMENT, -1)
    return (
        *(
            _segment(row, found.get((row[0], row[1]), {}), packed.get((row[0], row[1])), loose.get(row[0]))
            for row in segments
        ),
        *(_tail(row, terms, loose.get(row[0])) for row in tails),
    )


def _segment(
    row: Row,
    postings: _Postings,
    codes: NDArray[np.uint8] | None,
    loose: _Loose | None,
) -> IndexBlock:
    scope, segment, lengths, kinds, origins, places, times = row
    first = segment * SEGMENT
    coded = None if codes is None else np.ones(SEGMENT, np.bool_)
    if codes is None and loose is not None:
        codes, coded = _coded(first, SEGMENT, loose)
    return IndexBlock(
        scope=scope,
        first=first,
        lengths=np.frombuffer(lengths, "<u2"),
        kinds=np.frombuffer(kinds, np.uint8),
        postings=postings,
        origins=None if origins is None else np.frombuffer(origins, "<i8"),
        places=None if places is None else np.frombuffer(places, "<i8"),
        times=None if times is None else np.frombuffer(times, "<f8"),
        codes=codes,
        coded=coded,
    )


def _tail(row: Row, terms: Sequence[int], loose: _Loose | None) -> IndexBlock:
    scope, first, nos, lengths, kinds, further, origins, places, times, sizes, hashes, counts = row
    at = np.frombuffer(nos, ">i8").astype(np.int64) - first
    size = int(at.max()) + 1

    def spread(column: bytes, of: str, to: type[np.generic]) -> Any:
        filled = np.zeros(size, to)
        filled[at] = np.frombuffer(column, of)
        return filled

    there, times_in = np.frombuffer(hashes, "<i8"), np.frombuffer(counts, np.uint8)
    owners = np.repeat(at, np.frombuffer(sizes, ">i4")).astype(np.uint32)
    postings: _Postings = {}
    for term in terms:
        which = np.flatnonzero(there == term)
        if len(which):
            which = which[np.argsort(owners[which])]
            postings[term] = owners[which], times_in[which]
    codes, coded = (None, None) if loose is None else _coded(first, size, loose)
    return IndexBlock(
        scope=scope,
        first=first,
        lengths=spread(lengths, ">i4", np.uint16),
        kinds=spread(kinds, ">i2", np.uint8) + np.uint8(FURTHER) * spread(further, "u1", np.uint8),
        postings=postings,
        origins=spread(origins, ">i8", np.int64),
        places=spread(places, ">i8", np.int64),
        times=spread(times, ">f8", np.float64),
        codes=codes,
        coded=coded,
    )


def _coded(first: int, size: int, loose: _Loose) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    numbers, bits = loose
    here = (numbers >= first) & (numbers < first + size)
    codes, coded = np.zeros((size, bits.shape[1]), np.uint8), np.zeros(size, np.bool_)
    codes[numbers[here] - first], coded[numbers[here] - first] = bits[here], True
    return codes, coded


def relatives_from(refs: Iterable[Row], copies: Iterable[Row]) -> dict[int, Relative]:
    """The value of `SearchData.relatives`. What several conversations that are named have together is the first's."""
    found: dict[int, Relative] = {}
    for _, own, ref, through, shown in refs:
        if ref is not None and own not in found and ref not in found:
            ranges = tuple([(part.lower, part.upper - 1) for part in shown])
            found[ref] = Relative(own=own, through=through, shown=ranges, digests={})
    for own, ref, digest, copy in copies:
        if ref in found and found[ref].own == own:
            found[ref].digests[digest] = copy
    return found


def of_relatives(block: IndexBlock, relatives: Mapping[int, Relative]) -> IndexBlock:
    """The block, with what relatives have together with a conversation as that one's, and without what of it that one
    does not show."""
    origins, places, kinds = block.origins, block.places, block.kinds
    if not relatives or origins is None or places is None:
        return block
    origins, places, kinds = origins.copy(), places.copy(), kinds.copy()
    for ref, one in relatives.items():
        there = np.flatnonzero(block.origins == ref)
        messages = there[kinds[there] % FURTHER == CODES[EntryKind.MESSAGE]]
        messages = messages[places[messages] <= one.through]
        origins[messages] = one.own
        kinds[messages[~_in_ranges(places[messages], one.shown)]] = 0
        for at in there[kinds[there] % FURTHER == CODES[EntryKind.DIGEST]].tolist():
            if (digest := int(places[at])) in one.digests:
                copy = one.digests[digest]
                origins[at], places[at] = one.own, digest if copy is None else copy
                kinds[at] = 0 if copy is None else kinds[at]
    return replace(block, origins=origins, places=places, kinds=kinds)


def _in_ranges(places: NDArray[np.int64], ranges: Ranges) -> NDArray[np.bool_]:
    bounds = np.array(ranges, np.int64).reshape(-1, 2)
    return np.searchsorted(bounds[:, 0], places, "right") > np.searchsorted(bounds[:, 1], places, "left")


def without_relatives(sources: Iterable[Source], relatives: Mapping[int, Relative]) -> Iterator[Source]:
    """The sources without messages that relatives have together with a conversation, and digests that rest on them
    alone: it has its own."""
    for source in sources:
        one = relatives.get(source.origin) if source.kind in (EntryKind.MESSAGE, EntryKind.DIGEST) else None
        if one is None or source.end is None or source.end > one.through:
            yield source


def unseen_from(rows: Iterable[Row]) -> dict[EntryKind, dict[int, int]]:
    """The value of `SearchData.unseen`."""
    found = defaultdict[EntryKind, dict[int, int]](dict)
    for kind, origin, start in rows:
        found[KINDS[kind]][origin] = min(start, found[KINDS[kind]].get(origin, start))
    return dict(found)


def source_from(row: Row, *, author: str | None = None) -> Source:
    kind, origin, place, text, said_at, said_offset, conversation, start, end, role, agent, subject = row[:12]
    title, doc_type, namespace, metadata = row[12:16] if len(row) > 12 else (None, None, None, None)
    private = len(row) > 16 and row[16]
    return build(
        Source,
        kind=KINDS[kind],
        origin=origin,
        place=place,
        text=text,
        said_at=said_at if said_offset is None else with_offset(said_at, said_offset),
        conversation=conversation,
        start=start,
        end=end,
        role=role,
        author=author,
        agent=agent,
        title=title,
        doc_type=doc_type,
        namespace=namespace,
        metadata=metadata or "{}",
        subject=subject,
        private=private,
    )


def message_from(row: Row, payload: str) -> Source:
    """The source of a message; its author's name is read from its item, the `payload`."""
    return source_from(row, author=author_in(row[9], payload))


_PASSAGE = Struct(">qii?")
"""The number of a passage's entry, where the passage begins and ends, and whether it has a vector."""


def candidates_from(rows: Sequence[Row]) -> list[Candidate]:
    """The candidates in rows of `search_candidates`."""
    packed = [[*_PASSAGE.iter_unpack(row[1])] for row in rows]
    coded = sum([has for passages in packed for _, _, _, has in passages])
    halves = np.frombuffer(b"".join([row[2] for row in rows if row[2]]), "<f2")
    vectors = iter(halves.astype(np.float32).reshape(coded, -1) if coded else ())
    return [
        build(
            Candidate,
            scope=scope,
            source=source_from(source, author=author),
            passages=tuple(
                [
                    build(IndexedPassage, no=no, start=start, end=end, vector=next(vectors) if has else None)
                    for no, start, end, has in passages
                ]
            ),
        )
        for (scope, _, _, author, *source), passages in zip(rows, packed, strict=True)
    ]
