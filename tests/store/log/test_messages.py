"""Messages: every field comes back equal, raw JSON byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Kind, Message, Role, storable
from hitherto.store.store import Store
from tests.store.samples import SCOPE, call, head_of, log_of, result, user, write

NESTED = 200
RAWS = {
    "keys in their order": '{"z": 1, "a": 2, "m": {"b": 1, "a": 2}}',
    "a key twice": '{"a": 1, "a": 2}',
    "spaces": '{ "a" :1,\n\t"b":[ ] }',
    "numbers": '{"a": -0.0, "b": 1e400, "c": 1E-7, "d": 0.1000, "e": 1.0, "f": 123456789012345678901234567890}',
    "escapes": r'{"nul": "a\u0000b", "lone": "\ud800", "low": "\udfff\ud800", "pair": "\ud83d\ude00", "slash": "\/"}',
    "text": '{"a": "Grüße, 世界, 🗝, \u202e\u2028 <|endoftext|> %s %(a)s {} $1 \'; --"}',
    "empty": "{}",
    "nested": '{"a": ' * NESTED + "1" + "}" * NESTED,
    "long": json.dumps({"content": "x" * 3_000_000}),
}
TIMES = [
    datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-7, minutes=-30))),
    datetime.max.replace(tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
]


class TestMessage:
    async def test_raw_and_metadata_come_back_byte_for_byte(self, store: Store) -> None:
        await write(store, "c", *(replace(user(), raw=raw, metadata=raw) for raw in RAWS.values()))
        found = zip(RAWS.items(), await log_of(store, "c"), strict=True)
        for (name, raw), logged in found:
            assert logged.message.raw == raw, name
            assert logged.message.metadata == raw, name

    async def test_every_role_and_kind(self, store: Store) -> None:
        written = await write(
            store,
            "c",
            *(
                Message(raw='{"a": 1}', wire=RESPONSES, role=role, kind=kind, text="", metadata='{"b": 2}')
                for role in Role
                for kind in Kind
            ),
        )
        assert await log_of(store, "c") == list(written.logged)

    async def test_every_field_comes_back(self, store: Store) -> None:
        plain = storable("readable \x00\ud800 text — 世界 \\ \n \r\n \t '\" %s")
        batch = [
            *(replace(user(f"{at}"), expires_at=at, said_at=at) for at in TIMES),
            replace(call("toolu_1", 'b"\\,{}', ""), text=plain, tools=("look up", "{a,b}", ""), wire=ANTHROPIC),
            replace(
                result("toolu_1"),
                answers=("toolu_1", 'b"\\,{}', ""),
                tools=("look up", "{a,b}", ""),
                text=plain,
                wire=CHAT,
            ),
            replace(user(plain), raw=json.dumps({"content": plain})),
        ]
        written = await write(store, "c", *batch, tokens=[0, 1, 2**31 - 1, 2**31 - 1, 5, 6, 7])
        log = await log_of(store, "c")
        assert [logged.message for logged in log] == batch
        assert log == list(written.logged)
        assert not any(logged.erased for logged in log)
        assert {logged.rev for logged in log} == {1}

    async def test_when_it_was_said_orders_nothing(self, store: Store) -> None:
        """Not the log, nor its times: those are when it was appended."""
        late = datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        early = datetime(2, 1, 1, tzinfo=timezone(timedelta(hours=14)))
        for at in (late, early, None):
            await write(store, "c", replace(user(f"{at}"), said_at=at))
        log = await log_of(store, "c")
        assert [one.message.said_at for one in log] == [late, early, None]
        assert [one.said_at for one in log] == [late, early, log[2].created_at]
        assert [one.created_at for one in log] == sorted(one.created_at for one in log)
        assert log[0].created_at < late
        head = await head_of(store, "c")
        assert head.now >= log[2].created_at
        assert head.now < late

    async def test_a_long_batch_keeps_its_order(self, store: Store) -> None:
        batch = [user(f"{n}") for n in range(1_000)]
        await write(store, "c", *batch)
        assert [logged.message for logged in await log_of(store, "c")] == batch

    async def test_nobody_changes_a_message_through_what_was_handed_out(self, store: Store) -> None:
        await write(store, "c", user("as it was"))
        head = await head_of(store, "c")
        found = await store.messages(SCOPE, "c", head.ref, MessageRange(start=0, stop=1))
        found[0].message.payload["content"] = "changed"
        found.clear()
        assert [logged.message for logged in await log_of(store, "c")] == [user("as it was")]
