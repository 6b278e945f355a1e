"""What a turn's key was used for before: an answer, which a retry takes, or one that broke off, which it takes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import Message, Role, to_json
from hitherto.engine.handle import Handle
from hitherto.engine.log.append import AppendResult
from hitherto.engine.log.rewind import Rewinder
from hitherto.errors import ConcurrentWrite, IdempotencyKeyReused, InvalidInput, NotFound

_MARK = "hitherto_turn"
"""The metadata of a partial answer's last message by which a retry finds what to take back."""

_LONGEST = 1_000
"""A partial answer of more messages is not taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a turn with the same key and question appended: the `messages` after the question, and the result."""

    messages: tuple[Message, ...]
    result: AppendResult


def marked(message: Message, key: str | None, size: int) -> Message:
    """The last message of a partial answer. Its metadata says so; `_MARK` has a hash of the key and the number of
    messages, by which a retry finds them."""
    mark = {"key": None if key is None else key_mark(key), "messages": size}
    noted = {**json.loads(message.metadata), "partial": True, _MARK: mark}
    return replace(message, metadata=to_json(noted, what="metadata"))


def key_mark(key: str) -> str:
    """What stands for a key: it may be long, and is the caller's own."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


async def retried(handle: Handle, question: Sequence[Message], key: str) -> Answered | None:
    """What answered the question under this key. None if nothing did; what an earlier turn with this key and this
    question left when it broke off is then taken back, if nothing was said since.

    Raises IdempotencyKeyReused if the key was used for another question or without an answer, NotFound if its answer
    was erased.
    """
    found = await _answered(handle, question, key)
    if found is None:
        await _take_back(handle, question, key)
    return found


async def _answered(handle: Handle, question: Sequence[Message], key: str) -> Answered | None:
    store, scope, name = handle.services.store, handle.scope, handle.id
    receipt = await store.receipt(scope, name, key)
    if receipt is None:
        return None
    head = await handle.head()
    stored = await store.messages(scope, name, head.ref, MessageRange(start=receipt.start, stop=receipt.end + 1))
    if not stored or any(one.erased for one in stored):
        raise NotFound(f"key={key!r} was answered before, and the answer was erased since; use another key")
    count = len(question)
    follows = stored[count].message.role if len(stored) > count else None
    if not _asks(question, [one.message for one in stored[:count]]) or follows is not Role.ASSISTANT:
        raise IdempotencyKeyReused(
            f"key={key!r} was used for another question, or without an answer (seq {receipt.start} to "
            f"{receipt.end}); give every turn a key of its own, and the same key only to a retry of the same turn"
        )
    result = AppendResult(start=receipt.start, end=receipt.end, rev=receipt.rev, replayed=True)
    return Answered(messages=tuple(one.message for one in stored[count:]), result=result)


async def _take_back(handle: Handle, question: Sequence[Message], key: str) -> None:
    store, scope, name = handle.services.store, handle.scope, handle.id
    while True:
        head = await handle.head()
        start = max(head.view_start, head.next_seq - _LONGEST)
        newest = MessageRange(start=start, stop=head.next_seq, live_at=head.rev)
        there = await store.messages(scope, name, head.ref, newest) if start < head.next_seq else []
        size = _size_of_partial(there[-1].message, key) if there else 0
        left = there[-size:] if size else []
        if len(left) < size or not left or not _asks(question, [one.message for one in left[: len(question)]]):
            return
        try:
            await Rewinder(handle).rewind(left[0].seq - 1, expect=head.rev)
        except ConcurrentWrite:  # something was said meanwhile: look again
            continue
        except InvalidInput:  # messages were taken back too often: it stays
            pass
        return


def _asks(question: Sequence[Message], stored: Sequence[Message]) -> bool:
    """Whether these messages are the question."""
    return [one.raw for one in stored] == [one.raw for one in question]


def _size_of_partial(last: Message, key: str) -> int:
    """How many messages a turn with this key has left, of which `last` is the last; 0 if it is none of that kind."""
    mark: object = json.loads(last.metadata).get(_MARK)
    found = cast("dict[str, object]", mark) if isinstance(mark, dict) else {}
    size = found.get("messages")
    return size if found.get("key") == key_mark(key) and isinstance(size, int) and 0 < size <= _LONGEST else 0
