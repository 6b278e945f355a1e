"""Session classes with a fixed policy preset each, under the names that such sessions have elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict, Unpack

from agents import RunContextWrapper, SessionSettings

from hitherto import (
    AppendResult,
    Conversation,
    Digest,
    DigestAction,
    Logged,
    Memory,
    Opening,
    Scope,
    SyncMemory,
    none,
)
from hitherto.integrations.openai_agents import HithertoSession, Route
from hitherto.other_systems.session_strategies.policies import compacting, summarizing, trimming

_Memory = Memory | Opening | SyncMemory


class _SessionOptions(TypedDict, total=False):
    """Options that every session takes."""

    scope: Required[Scope | Route]
    model: str | None
    session_settings: SessionSettings | dict[str, Any] | None
    wait: float
    budget: int | None


class _CompactingOptions(_SessionOptions, total=False):
    trigger: Mapping[str, int] | int | None
    keep: int | None
    calls: bool
    at_least: int | None


class DefaultSession(HithertoSession):
    """Every item as it is: preset `none`."""

    def __init__(self, session_id: str, memory: _Memory, **options: Unpack[_SessionOptions]) -> None:
        super().__init__(session_id, memory, policy=none(), **options)


class TrimmingSession(HithertoSession):
    """At `max_turns` user turns, all but the newest `keep_last_n_turns` are hidden: preset `trim`.

    Raises InvalidPolicy for numbers that make no sense.
    """

    def __init__(
        self,
        session_id: str,
        memory: _Memory,
        *,
        max_turns: int | None = None,
        keep_last_n_turns: int | None = None,
        **options: Unpack[_SessionOptions],
    ) -> None:
        policy = trimming(**_given(max_turns=max_turns, keep_last_n_turns=keep_last_n_turns))
        super().__init__(session_id, memory, policy=policy, **options)


class SummarizingSession(HithertoSession):
    """At `context_limit` user turns, all but the newest `keep_last_n_turns` become a summary, shown as a separate turn:
    preset `summarize`. The memory's model writes it, in the background.

    Raises InvalidPolicy for numbers that make no sense.
    """

    def __init__(
        self,
        session_id: str,
        memory: _Memory,
        *,
        context_limit: int | None = None,
        keep_last_n_turns: int | None = None,
        **options: Unpack[_SessionOptions],
    ) -> None:
        given = _given(context_limit=context_limit, keep_last_n_turns=keep_last_n_turns)
        super().__init__(session_id, memory, policy=summarizing(**given), **options)


class CompactingSession(HithertoSession):
    """Over `trigger` user turns, tool results become placeholders, except those of the newest `keep` turns: preset
    `compact`. `trigger` is a number of turns, or `{"turns": n}`; `calls` redacts the calls' arguments too; `at_least`
    is the minimum of tokens that this must free.

    Raises InvalidPolicy for numbers that make no sense.
    """

    def __init__(
        self,
        session_id: str,
        memory: _Memory,
        *,
        trigger: Mapping[str, int] | int | None = None,
        keep: int | None = None,
        calls: bool = False,
        at_least: int | None = None,
        **options: Unpack[_SessionOptions],
    ) -> None:
        given = _given(trigger=trigger, keep=keep, calls=calls, at_least=at_least)
        super().__init__(session_id, memory, policy=compacting(**given), **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """What one redaction freed: `tokens` fewer in the items of messages `start` to `end` (inclusive), during the
    user's turn `turn`, counted from 1 over the whole log."""

    turn: int
    tokens: int
    start: int
    end: int


class TrackingCompactingSession(CompactingSession):
    """A `CompactingSession` that reports what it freed: `freed` for all turns so far, `on_freed` as it happens.

    `on_freed` is called after the write, on the memory's event loop. What it raises reaches the caller of `add_items`,
    whose items are in the log by then.
    """

    def __init__(
        self,
        session_id: str,
        memory: _Memory,
        *,
        on_freed: Callable[[Freed], None] | None = None,
        **options: Unpack[_CompactingOptions],
    ) -> None:
        super().__init__(session_id, memory, **options)
        self._on_freed = on_freed

    async def freed(self, *, wrapper: RunContextWrapper[Any] | None = None) -> list[Freed]:
        """What each redaction freed, in canonical tokens (o200k_base), oldest first."""
        return await self._do(_freed, wrapper)

    async def _appended(self, conversation: Conversation, appended: AppendResult) -> None:
        if self._on_freed is not None and appended.fired:
            for one in await _freed(conversation, fired=appended.fired):
                self._on_freed(one)


async def _freed(conversation: Conversation, *, fired: Sequence[int] = ()) -> list[Freed]:
    """What the redactions with the ids `fired` freed, without any all redactions, oldest first."""
    after, digests = min(fired, default=1) - 1, list[Digest]()
    while page := await conversation.digests(after=after):
        after = page[-1].id
        redactions = [one for one in page if one.action is DigestAction.REDACT]
        digests += [one for one in redactions if not fired or one.id in fired]
    if not digests:
        return []
    messages = await conversation.messages(start=min(one.end for one in digests))
    return [Freed(turn=_turn(messages, one), tokens=one.tokens, start=one.start, end=one.end) for one in digests]


def _turn(messages: list[Logged], digest: Digest) -> int:
    """The turn of the newest message that was there when `digest` fired."""
    return max(logged.sums.turns for logged in messages if logged.rev <= digest.fired_rev)


def _given(**parameters: Any) -> dict[str, Any]:
    """The parameters that were given; for the others the preset's defaults apply."""
    return {name: value for name, value in parameters.items() if value is not None}
