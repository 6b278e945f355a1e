"""Recognizes when the SDK's compaction replaces what a session shows: it clears, then adds, also to undo itself.

The log is append-only, so what is added then must not be taken for new messages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agents import TResponseInputItem

from hitherto.core.log.message import Payload, to_json
from hitherto.core.scope import Scope
from hitherto.engine.conversation import Conversation


@dataclass(frozen=True)
class Snapshot:
    """What the SDK's compaction session asks a store for: the newest items, whether these are all items, and a function
    that replaces those from a position on. It returns False if they are no longer the newest."""

    items: list[TResponseInputItem]
    complete: bool
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]


@dataclass
class _Cleared:
    """`shown` are the fingerprints of what was shown before each clear since the last append, with the revision from
    whose view a budget cut it; None if it was all that the view had. `just` says that the last change was a clear."""

    shown: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    just: bool = True


class Clears:
    """The clears of one session object, by scope. They only serve to tell a replacement from a fresh start; where they
    are not known, for example in another process, items are appended."""

    def __init__(self) -> None:
        self._of: dict[Scope, _Cleared] = {}

    def remember(self, shown: Sequence[Payload], conversation: Conversation, *, cut_from: int | None = None) -> None:
        """Record that `shown` was cleared; `cut_from` is the revision of the view that a budget cut it from."""
        if shown or conversation.scope in self._of:
            cleared = self._of.setdefault(conversation.scope, _Cleared())
            cleared.just = True
            if shown:
                cleared.shown[_fingerprint(shown)] = cut_from

    def over(self, conversation: Conversation) -> None:
        """Record that something was appended since the last clear."""
        self._of.pop(conversation.scope, None)

    async def undone_by(self, items: Sequence[Payload], conversation: Conversation) -> bool:
        """Whether adding `items` means replacing what was cleared, and nothing has been written since.

        A single item is a fresh start, even if it is the same as before, unless it is a compaction: people say hello
        again.
        """
        cleared = self._of.get(conversation.scope)
        if cleared is None or not cleared.just:
            return False
        compacted = any(item.get("type") == "compaction" for item in items)
        if not compacted and (len(items) == 1 or _fingerprint(items) not in cleared.shown):
            return False
        head = await conversation.head()
        if head is None or head.view_start != head.next_seq:
            return False
        cleared.just = False
        return True

    def cut_from(self, items: Sequence[Payload], conversation: Conversation) -> int | None:
        """The revision from whose view a budget cut `items` before a clear; None if they are not what it left."""
        cleared = self._of.get(conversation.scope)
        return None if cleared is None else cleared.shown.get(_fingerprint(items))


def replaced_suffix(
    shown: Sequence[Payload],
    suffix: Sequence[Payload],
    output: Sequence[Payload],
    prune_prefix: Callable[[TResponseInputItem], bool] | None = None,
) -> list[Payload] | None:
    """`shown` with `output` in the place of `suffix`; None if `shown` does not end with `suffix`, or that is empty.

    `prune_prefix` says of each of the oldest items whether to remove it too, up to the first one that stays.
    """
    start = len(shown) - len(suffix)
    if not suffix or start < 0 or list(shown[start:]) != list(suffix):
        return None
    first = 0
    # A payload is one of the dicts in the SDK's union.
    while (
        prune_prefix is not None and first < start and prune_prefix(shown[first])  # pyright: ignore[reportArgumentType]
    ):
        first += 1
    return [*shown[first:start], *output]


def _fingerprint(items: Sequence[Payload]) -> str:
    return hashlib.sha256(json.dumps(list(items), sort_keys=True).encode()).hexdigest()


_MARK = "__enc__"
_OPENS = f'{{"{_MARK}"'


def sealed(item: Mapping[str, object]) -> Payload:
    """The item as the log accepts it: a copy, or a reasoning item around it if it is encrypted."""
    if _MARK not in item:
        return dict(item)
    first = {_MARK: item[_MARK]}
    return {"type": "reasoning", "summary": [], "encrypted_content": to_json({**first, **item}, what="a sealed item")}


def unsealed(item: Payload) -> Payload:
    """The item as it was given to `sealed`."""
    content = item.get("encrypted_content")
    if item.get("type") != "reasoning" or not isinstance(content, str) or not content.startswith(_OPENS):
        return item
    return json.loads(content)
