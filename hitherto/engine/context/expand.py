"""Reading a part of the log word for word: the messages of a digest, or of a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from hitherto.aside import aside
from hitherto.core.context.budget import checked_budget
from hitherto.core.context.expansion import Expansion, ExpansionPage
from hitherto.core.digests.digest import Digest
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import Logged, size_of
from hitherto.core.policy.span import Span
from hitherto.engine.context.log_reader import MARGIN, LogReader
from hitherto.engine.handle import Handle
from hitherto.errors import InvalidBudget, InvalidInput, NotFound

Expandable = int | Digest | Span | tuple[int, int] | tuple[int, int, int]
"""A digest or its id, a span of a manifest, a range of seqs (both inclusive), or `Expansion.next`."""


_CHARACTERS = 20
"""Of a page for each token of its budget, at most."""


async def expanded(handle: Handle, what: Expandable, budget: int) -> Expansion:
    """One page of the live messages of `what` from the last `clear` on. Raises as `Conversation.expand`."""
    budget, _ = checked_budget(budget, 0)
    asked = _checked(what)
    head = await handle.head()  # erases what has expired
    first, last, skipped = asked if isinstance(asked, tuple) else await _of_digest(handle, asked)
    start, last = max(first, head.view_start), min(last, head.last_seq)
    page, reader = ExpansionPage(last, budget, handle.services.canonical.count), LogReader(handle)
    full = False
    while start <= last and not full:
        found = await reader.page(head, MessageRange(start=start, stop=last + 1, limit=MARGIN, live_at=head.rev))
        reached = found[-1].seq if found else last
        hidden = await handle.services.store.facts.asked_to_forget(handle.scope, head.ref, start, reached)
        there = [one for one in found if not one.erased and one.seq not in hidden]
        full = not await aside(size_of([one.message for one in there]), _filled, page, handle, there, first, skipped)
        start = reached + 1
    shown = await aside(_CHARACTERS * budget, page.finished)
    return _not_empty(shown, budget) if full else shown


def _filled(page: ExpansionPage, handle: Handle, found: Sequence[Logged], first: int, skipped: int) -> bool:
    """Put messages on the page, the one with seq `first` without its first `skipped` characters. Returns whether there
    was room."""
    return all(page.add(one, handle.services.voices(one.message), skipped if one.seq == first else 0) for one in found)


async def _of_digest(handle: Handle, id: int) -> tuple[int, int, int]:
    row = await handle.services.store.digest(handle.scope, handle.id, id)
    if row is None:
        raise NotFound(f"{handle.id!r} has no digest {id} in scope {handle.scope}; chat.digests() gives those it has")
    return row.start, row.end, 0


def _checked(what: object) -> int | tuple[int, int, int]:
    """The id of a digest, or the first seq, the last one, and how many characters of the first to skip."""
    match what:
        case Digest():
            return what.id
        case Span():
            return what.start, what.end, 0
        case int() if not isinstance(what, bool):
            return what
        case list() | tuple():
            given = cast("Sequence[object]", what)
            numbers = [one for one in given if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
            if len(numbers) == len(given) and len(given) in (2, 3) and numbers[0] <= numbers[1]:
                return numbers[0], numbers[1], numbers[2] if len(given) == 3 else 0
        case _:
            pass
    raise InvalidInput(
        f"cannot expand {what!r}; give a digest or its id, or the seqs of the first and the last message, both "
        "inclusive: (first, last)"
    )


def _not_empty(page: Expansion, budget: int) -> Expansion:
    if not page.seqs:
        raise InvalidBudget(f"budget is {budget}, too few tokens to show anything of a message; give more, e.g. 2_000")
    return page
