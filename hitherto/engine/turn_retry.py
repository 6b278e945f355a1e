"""What a turn's key was used for before: an answer, which a retry takes; steps, after which it goes on; or an answer
that broke off, which it takes back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from hitherto.core.log.conversations import MessageRange, Receipt
from hitherto.core.log.message import Logged, Message, Role, to_json
from hitherto.core.log.ranges import joined
from hitherto.engine.handle import Handle
from hitherto.engine.log.append import AppendResult
from hitherto.engine.log.rewind import Rewinder
from hitherto.errors import ConcurrentWrite, IdempotencyKeyReused, InvalidInput, NotFound

_MARK = "hitherto_turn"
"""The metadata of a partial answer's last message by which a retry finds what to take back."""

_FEW, _LONGEST = 32, 1_000
"""How many of the newest messages are looked through at first, and at most: a partial answer of more messages is not
taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnProgress:
    """What turns with the same key and question have appended: the `messages` after the question, in `steps` steps.

    `result` is that of the answer; None if there is no answer yet. The messages are then those of the steps if nothing
    was said since; else none, and the question is asked again. `asked`: the question is in the log, and nothing was
    said since."""

    messages: tuple[Message, ...]
    steps: int
    result: AppendResult | None = None
    asked: bool = False


def marked(message: Message, key: str | None, size: int) -> Message:
    """The last message of a partial answer. Its metadata says so; `_MARK` has a hash of the key and the number of
    messages, by which a retry finds them."""
    mark = {"key": None if key is None else key_mark(key), "messages": size}
    noted = {**message.metadata, "partial": True, _MARK: mark}
    return replace(message, raw_metadata=to_json(noted, what="metadata"))


def key_mark(key: str) -> str:
    """What stands for a key: it may be long, and is the caller's own."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def step_key(key: str, step: int) -> str:
    """The key under which a step of the turn with this key is appended, counted from 0."""
    return f"{key_mark(key)} step {step}"


async def retried(handle: Handle, question: Sequence[Message], key: str) -> TurnProgress | None:
    """What turns with this key and this question have appended, None if nothing. Of one that is not answered, what
    broke off is then taken back, if nothing was said since.

    Raises IdempotencyKeyReused if the key was used for another question or without an answer, NotFound if its answer
    was erased.
    """
    store, scope, name = handle.services.store, handle.scope, handle.id
    answer = await store.receipt(scope, name, key)
    receipts: list[Receipt] = []
    while (step := await store.receipt(scope, name, step_key(key, len(receipts)))) is not None:
        receipts.append(step)
    steps = len(receipts)
    if answer is not None:
        receipts.append(answer)
    if not receipts:
        await _take_back(handle, question, key, after=None)
        return None
    batches = await _batches(handle, receipts)
    if answer is not None and (not batches[-1] or any(one.erased for batch in batches for one in batch)):
        raise NotFound(f"key={key!r} was answered before, and the answer was erased since; use another key")
    begins = [at for at, batch in enumerate(batches) if _begins(batch, question)] if question else [0]
    turn = [one for batch in batches[begins[-1] :] for one in batch] if begins else []
    said = turn[len(question) :]
    if turn and not said and answer is None:  # the question was appended first
        newest = await _take_back(handle, question, key, after=turn[-1])
        return TurnProgress(messages=(), steps=steps, asked=newest)
    if not said or said[0].message.role is not Role.ASSISTANT:
        raise IdempotencyKeyReused(
            f"key={key!r} was used for another question, or without an answer (seq {receipts[0].start} to "
            f"{receipts[-1].end}); give every turn a key of its own, and the same key only to a retry of the same turn"
        )
    messages = tuple(one.message for one in said)
    if answer is not None:
        result = AppendResult(start=answer.start, end=answer.end, rev=answer.rev, replayed=True)
        return TurnProgress(messages=messages, steps=steps, result=result)
    newest = await _take_back(handle, question, key, after=said[-1])
    return TurnProgress(messages=messages if newest else (), steps=steps, asked=newest)


async def _batches(handle: Handle, receipts: Sequence[Receipt]) -> list[list[Logged]]:
    """The messages of each receipt."""
    head, stored = await handle.head(), list[Logged]()
    for start, end in joined((one.start, one.end) for one in receipts):
        there = MessageRange(start=start, stop=end + 1)
        stored += await handle.services.store.messages(handle.scope, handle.id, head.ref, there)
    return [[one for one in stored if receipt.start <= one.seq <= receipt.end] for receipt in receipts]


async def _take_back(handle: Handle, question: Sequence[Message], key: str, *, after: Logged | None) -> bool:
    """Take back what a turn with this key left when it broke off, if it is the newest of the log; it begins with the
    question, or follows `after`, the turn's last step. Returns whether `after` is then the newest message."""
    store, scope, name = handle.services.store, handle.scope, handle.id
    while True:
        head = await handle.head()
        there, size, near = list[Logged](), 0, False
        for window in (_FEW, _LONGEST) if after is None else (_LONGEST,):
            start = max(head.view_start, head.next_seq - window, after.seq + 1 if after else 0)
            newest = MessageRange(start=start, stop=head.next_seq, live_at=head.rev)
            there = await store.messages(scope, name, head.ref, newest) if start < head.next_seq else []
            near = after is not None and start == after.seq + 1
            size = _size_of_partial(there[-1].message, key) if there else 0
            if size <= len(there):
                break
        left = there[-size:] if size else []
        follows = near and len(left) == len(there)
        if len(left) < size or not left or not (follows or _begins(left, question)):
            return near and not there and after is not None and not after.erased and after.live(head.rev)
        try:
            await Rewinder(handle).rewind(left[0].seq - 1, expect=head.rev)
        except ConcurrentWrite:  # something was said meanwhile: look again
            continue
        except InvalidInput:  # messages were taken back too often: it stays
            return False
        return follows


def _begins(batch: Sequence[Logged], question: Sequence[Message]) -> bool:
    """Whether these messages begin with the question."""
    return [one.message.raw for one in batch[: len(question)]] == [one.raw for one in question]


def _size_of_partial(last: Message, key: str) -> int:
    """How many messages a turn with this key has left, of which `last` is the last; 0 if it is none of that kind."""
    mark: object = last.metadata.get(_MARK)
    found = cast("dict[str, object]", mark) if isinstance(mark, dict) else {}
    size = found.get("messages")
    return size if found.get("key") == key_mark(key) and isinstance(size, int) and 0 < size <= _LONGEST else 0
