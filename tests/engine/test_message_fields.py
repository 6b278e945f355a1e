"""Every field of a message that is given is kept, sent to a service, and told apart by an idempotency key."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hitherto import user
from hitherto.core.log.append import fingerprint
from hitherto.core.log.message import ANTHROPIC, Message
from hitherto.http.shapes import MessageInput, argument_to_json, messages_of
from hitherto.store.store import Store
from hitherto.wire import read
from tests.conftest import SCOPE
from tests.memories import open_on

DAY = datetime(2099, 1, 1, tzinfo=UTC)
BARE = user("Hello.")
ITEM = read({"role": "user", "content": [{"type": "text", "text": "Hello."}]}, ANTHROPIC)
FROM_ITEM = ("role", "kind", "text", "calls", "answers", "tools")
GIVEN: dict[str, Any] = {
    "raw": ITEM.raw,
    "wire": ITEM.wire,
    "raw_metadata": '{"note": 1}',
    "expires_at": DAY,
    "said_at": DAY,
    "id": "m-1",
}
"""A value for each other field, which is not its default."""
FULL = replace(BARE, **GIVEN)


@pytest.mark.parametrize("name", [field.name for field in fields(Message) if field.name not in FROM_ITEM])
def test_a_batch_is_another_one_by_any_field(name: str) -> None:
    assert fingerprint([replace(BARE, **{name: GIVEN[name]})]) != fingerprint([BARE])


def test_a_service_is_sent_all_of_it() -> None:
    assert messages_of(MessageInput.model_validate(argument_to_json(FULL))) == FULL


@pytest.mark.parametrize("id", ["m-1", None])
def test_a_service_is_sent_an_id_that_is_not_the_items(id: str | None) -> None:
    message = replace(read({"role": "user", "content": "Hello.", "id": ""}, take_id=False), id=id)
    assert messages_of(MessageInput.model_validate(argument_to_json(message))) == message


@pytest.mark.parametrize("count", [1, 9], ids=["alone", "among others"])
async def test_all_of_it_is_kept(store: Store, count: int) -> None:
    async with open_on(store, policy="none") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        given = [FULL.with_id(f"m-{number}") for number in range(count)]
        await chat.append(*given)
        assert [one.message for one in await chat.messages()] == given
