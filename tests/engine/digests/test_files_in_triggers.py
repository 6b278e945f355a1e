"""Token triggers count the pages and seconds of files, not the length of their base64."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto import assistant, token_threshold, user
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Wire
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from hitherto.tokens import CANONICAL, counter_for
from hitherto.wire.cost import PAGE, SECOND
from tests.acceptance.dialogue import opener, says_each
from tests.conftest import SCOPE
from tests.wire.test_files import encoded, file, pdf, wav

PAGES, SECONDS = 2, 9
OF_PAGES = PAGES * (PAGE + counter_for(CANONICAL).image_tokens)
OF_SECONDS = SECONDS * SECOND
SOUND = {"type": "input_audio", "input_audio": {"data": encoded(wav(SECONDS)), "format": "wav"}}


@pytest.mark.parametrize(
    ("wire", "part", "cost"),
    [
        (CHAT, file(CHAT, pdf(PAGES)), OF_PAGES),
        (RESPONSES, file(RESPONSES, pdf(PAGES)), OF_PAGES),
        (ANTHROPIC, file(ANTHROPIC, pdf(PAGES)), OF_PAGES),
        (CHAT, SOUND, OF_SECONDS),
        (RESPONSES, SOUND, OF_SECONDS),
    ],
    ids=["chat-pdf", "responses-pdf", "anthropic-pdf", "chat-sound", "responses-sound"],
)
async def test_a_trigger_fires_by_what_is_counted(store: Store, wire: Wire, part: dict[str, Any], cost: int) -> None:
    async with opener(store)(Scripted(then=says_each)) as (memory, _):
        for threshold, fires in ((cost - 1, True), (cost + 300, False)):
            policy = token_threshold(threshold, keep_messages=2)
            chat = memory.conversation(f"above {threshold}", scope=SCOPE, policy=policy)
            await chat.append({"role": "user", "content": [part]}, wire=wire)
            result = await chat.append(assistant("I have it."), user("Good."), assistant("Yes."))
            assert (result.digest is not None) is fires
