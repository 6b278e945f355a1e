"""What an append costs beside its own statements sent by hand, and what a digest adds to it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from psycopg import AsyncConnection, AsyncCursor

from benchmarks.fleet import value
from benchmarks.ground import Ground, memory_on, turn
from benchmarks.measure import Measured, Side, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import Conversation, Memory, Policy, Scope, sliding_window

_BAR = Bar(limit=1.4)
_PROCESSOR = Bar(limit=1.0)
_TRIPS = Bar(limit=2)
_TEXT = 36
_BY_HAND = "by hand"

Statement = tuple[Any, Any, bool]
"""A statement, what it binds, and whether it is executed for each of these."""


async def run(ground: Ground) -> Findings:
    """Append two messages with a key ÷ the same statements sent by bare psycopg; and an append that sets off a digest ÷
    one under the same policy that does not."""
    random, warm_up, repetitions = Random(1), ground.size(100, quick=3), ground.size(500, quick=10)
    total = warm_up + repetitions
    # Texts of its own for each side: the counts of texts that were counted before are remembered.
    turns, other_turns, due_turns, other_due_turns = [[turn(random, _TEXT) for _ in range(total)] for _ in range(4)]
    async with ground.database() as url, ground.admin(url) as admin, memory_on(url, worker=False) as memory:
        measured, recorded, by_hand = [_chat(memory, tenant) for tenant in ("measured", "recorded", _BY_HAND)]
        for chat in (measured, recorded, by_hand):
            await chat.append(*turns[0])
        scripts = [await _recorded(recorded, other_turns[n], f"turn {n}") for n in range(total)]
        for number in range(total + 1):
            for rounds in (1, 2):
                chat = _chat(memory, "sliding", f"{rounds} rounds {number}", policy=sliding_window())
                for _ in range(rounds):
                    await chat.append(*turns[0])
        not_due_yet, due_next = [
            [_chat(memory, "sliding", f"{rounds} rounds {number}") for number in range(total + 1)] for rounds in (1, 2)
        ]
        with_digest = await _recorded(due_next[total], turns[0], "recorded")
        await ground.settle(url)
        ref = await value(admin, f"select ref from hitherto.conversation where tenant = '{_BY_HAND}'")
        async with await AsyncConnection[Any].connect(url, autocommit=True) as connection:
            hand = Hand(connection, scripts, tenant=_BY_HAND, ref=ref)
            append, statements = await in_turns(
                [
                    Side("append", lambda n: measured.append(*turns[n], key=f"turn {n}")),
                    Side("its statements by hand", hand.send),
                ],
                repetitions=repetitions,
                warm_up=warm_up,
            )
        # By themselves: what wakes the workers comes some time after the append.
        due, not_due = await in_turns(
            [
                Side("append with a digest", lambda n: due_next[n].append(*due_turns[n], key=f"turn {n}")),
                Side(
                    "append, same policy, no digest",
                    lambda n: not_due_yet[n].append(*other_due_turns[n], key=f"turn {n}"),
                ),
            ],
            repetitions=repetitions,
            warm_up=warm_up,
        )
        begun = await value(admin, "select count(*) from hitherto.digest")
        heads = [await _chat(memory, tenant).head() for tenant in ("measured", _BY_HAND)]
    if begun != total + 1 or [one and one.next_seq for one in heads] != [2 + 2 * total] * 2:
        raise RuntimeError(f"{begun} digests, and the heads {heads}: the sides are not what they say")
    on_processor = [
        Measured(f"{side.label}, processor time", side.processor, side.processor)
        for side in (append, statements, due, not_due)
    ]
    trips = [
        Figure(what=f"round trips, {side.label}", value=len(trips), unit="trips", bar=_TRIPS)
        for side, trips in ((append, scripts[-1]), (due, with_digest))
    ]
    letters = sum(len(message.text) for pair in turns for message in pair) / (2 * len(turns))
    return Findings(
        [
            ratio(append, statements, bar=_BAR),
            ratio(on_processor[0], on_processor[1]),
            Figure(what=on_processor[0].label, value=append.processor.median * 1e3, unit="ms", bar=_PROCESSOR),
            ratio(due, not_due, bar=_BAR),
            ratio(on_processor[2], on_processor[3]),
            *trips,
        ],
        [
            f"{repetitions} appends a side, messages of {letters:.0f} characters; fsync is on for all sides, on one "
            "server and one disk. By hand: the statements and values of other appends, recorded before, sent on one "
            "connection in the same pipelines. Processor time is this process's: not the server's.",
            "Digests are set off by the third round of conversations that are alike, and nobody makes them meanwhile.",
        ],
    )


def _chat(memory: Memory, tenant: str, name: str = "chat", policy: Policy | None = None) -> Conversation:
    return memory.conversation(name, scope=Scope(tenant=tenant, user="user", agent="bench"), policy=policy)


async def _recorded(chat: Conversation, pair: Sequence[Any], key: str) -> list[list[Statement]]:
    """What an append sends: the statements of each round trip."""
    with _recording() as trips:
        await chat.append(*pair, key=key)
    return trips


@contextmanager
def _recording() -> Generator[list[list[Statement]]]:
    """Notes each statement that psycopg sends meanwhile."""
    trips: list[list[Statement]] = []
    last: object = None

    def note(cursor: AsyncCursor[Any], query: object, values: object, *, many: bool) -> None:
        nonlocal last
        pipeline: object = cursor.connection._pipeline  # pyright: ignore[reportPrivateUsage]
        if pipeline is None or pipeline is not last:
            trips.append([])
        last = pipeline
        trips[-1].append((query, values, many))

    execute, executemany = AsyncCursor[Any].execute, AsyncCursor[Any].executemany

    async def noted(self: AsyncCursor[Any], query: Any, params: Any = None, **options: Any) -> AsyncCursor[Any]:
        note(self, query, params, many=False)
        return await execute(self, query, params, **options)

    async def noted_many(self: AsyncCursor[Any], query: Any, params_seq: Any, **options: Any) -> None:
        note(self, query, params_seq, many=True)
        await executemany(self, query, params_seq, **options)

    with patch.object(AsyncCursor, "execute", noted), patch.object(AsyncCursor, "executemany", noted_many):
        yield trips


class Hand:
    """Sends what appends to one conversation sent, to another that is in the same state."""

    def __init__(
        self, connection: AsyncConnection[Any], scripts: Sequence[list[list[Statement]]], **other: Any
    ) -> None:
        def values(given: Any) -> Any:
            return {**given, **{name: one for name, one in other.items() if name in given}} if given else given

        self._connection = connection
        self._scripts = [
            [
                [
                    (query, [values(one) for one in given] if many else values(given), many)
                    for query, given, many in trip
                ]
                for trip in script
            ]
            for script in scripts
        ]

    async def send(self, number: int) -> None:
        for trip in self._scripts[number]:
            cursors: list[AsyncCursor[Any]] = []
            async with self._connection.pipeline():
                for query, values, many in trip:
                    if many:
                        await self._connection.cursor().executemany(query, values)
                    else:
                        cursors.append(await self._connection.execute(query, values))
            for cursor in cursors:
                if cursor.rownumber is not None:
                    await cursor.fetchall()
