"""Putting what was recalled into a finished payload, as far as there is room for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hitherto.core.context.fit import Fitted
from hitherto.core.context.manifest import RecalledEntry
from hitherto.core.context.recalled import RecalledPiece, as_message
from hitherto.core.context.request import ContextRequest
from hitherto.core.policy.span import Fate, Reason, Span, merged, overlaid
from hitherto.core.recall.filter import EntryKind


def with_recalled(
    made: Fitted,
    found: Sequence[RecalledPiece],
    request: ContextRequest,
    *,
    own: tuple[str, str],
    left_out: Sequence[RecalledPiece] = (),
) -> Fitted:
    """`made` with `found` (the best first), which were chosen to fit into what is left of the budget; the last of them
    are left out if together they take more than each by itself.

    They stand ahead of the incoming message, as one message. `own` are the agent and the name of the conversation that
    the context is of. `left_out` had no room.
    """
    fitted, chosen = made, list(found)
    while chosen and _takes(fitted := _with(made, chosen, request), request) > request.room:
        chosen.pop()
    left_out = [*found[len(chosen) :], *left_out]
    made = _told_of(fitted, chosen, request, own) if chosen else made
    return replace(made, left_out=tuple(_told(one, request) for one in left_out))


def _takes(made: Fitted, request: ContextRequest) -> int:
    return made.total + max(request.growth(made.system, made.items), 0)


def lead_tokens(request: ContextRequest) -> int:
    """What recalled content takes beside its lines and their headings."""
    return request.cost(request.codec.write([as_message(())]))


def _with(made: Fitted, chosen: Sequence[RecalledPiece], request: ContextRequest) -> Fitted:
    """The payload with the chosen pieces in it, whether they fit or not."""
    written = request.codec.write([as_message(chosen)])
    at = len(made.items) - made.tail
    items = (*made.items[:at], *written, *made.items[at:])
    stable = made.stable if made.stable.items <= at else replace(made.stable, items=made.stable.items + len(written))
    return replace(made, items=items, stable=stable, sections={**made.sections, "recalled": request.cost(written)})


def _told_of(made: Fitted, chosen: Sequence[RecalledPiece], request: ContextRequest, own: tuple[str, str]) -> Fitted:
    """The payload with the chosen pieces' entries of the manifest, and their fates."""
    told = [_told(one, request) for one in chosen]
    mine = [(one, says) for one, says in zip(chosen, told, strict=True) if (one.agent, one.conversation) == own]
    return replace(made, fates=_fates(made.fates, mine), recalled=tuple(told))


def _told(one: RecalledPiece, request: ContextRequest) -> RecalledEntry:
    return RecalledEntry(
        why=one.why.value,
        kind=one.kind.value,
        conversation=one.conversation,
        agent=one.agent,
        start=one.start,
        end=one.end,
        digest=one.digest,
        document=one.document,
        passage=one.passage,
        title=None if one.here or one.kind is EntryKind.PASSAGE else one.title,
        score=round(one.score, 6),
        tokens=request.counter.count(one.line),
        characters=list(one.characters),
    )


def _fates(fates: Sequence[Span], own: Sequence[tuple[RecalledPiece, RecalledEntry]]) -> tuple[Span, ...]:
    """The fates, in which this conversation's recalled messages have the fate RECALLED, and spans that a recalled chunk
    stands for have its id."""
    # One by one: other messages may stand between those of a group, and a fate may end within it.
    tokens = {
        seq: 0 if at else says.tokens
        for one, says in own
        if one.kind is EntryKind.MESSAGE and one.start is not None
        for at, seq in enumerate(one.members or (one.start,))
    }
    over = [
        Span(start=seq, end=seq, fate=Fate.RECALLED, reason=Reason.RECALLED, tokens=tokens[seq])
        for seq in sorted(tokens)
    ]
    chunks = [says for one, says in own if one.kind is EntryKind.DIGEST]
    found = overlaid(fates, over)
    return merged(piece for span in found for piece in _named(span, chunks)) if chunks else merged(found)


def _named(span: Span, chunks: Sequence[RecalledEntry]) -> Iterable[Span]:
    if span.reason is not Reason.CHUNKED:
        return [span]
    over = sorted(
        (
            span.model_copy(update={"start": one.start, "end": one.end, "digest": one.digest})
            for one in chunks
            if one.start is not None and one.end is not None
        ),
        key=lambda one: one.start,
    )
    return overlaid([span], over)
