"""What cannot be read as a request is answered, so that nobody waits for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.types import INVALID_REQUEST, PARSE_ERROR

from hitherto.mcp.unreadable import unreadable_answer

LONE = {"name": "facts", "arguments": {"category": "half of \ud800"}}


def request(**more: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call"} | more)


@pytest.mark.parametrize(
    ("text", "code", "id", "words"),
    [
        (request(params=LONE), PARSE_ERROR, 7, "lone surrogate"),
        (request(params=LONE, id="\ud800"), PARSE_ERROR, None, "lone surrogate"),
        (request(params={"arguments": json.loads("[" * 300 + "]" * 300)}), PARSE_ERROR, 7, "recursion limit"),
        (request(params=[]), INVALID_REQUEST, 7, "this is no request"),
        (request(id=1.5), INVALID_REQUEST, None, "this is no request"),
        ("not json", PARSE_ERROR, None, "cannot be read as JSON"),
        ("[" * 100_000, PARSE_ERROR, None, "cannot be read as JSON"),
        ("[]", INVALID_REQUEST, None, "this is no request"),
        ("{}", INVALID_REQUEST, None, "this is no request"),
    ],
)
def test_it_is_said_what_is_wrong(text: str, code: int, id: object, words: str) -> None:
    for given in (text, text.encode()):
        answer = unreadable_answer(given)
        assert answer is not None
        assert (answer.error.code, answer.id) == (code, id)
        assert words in answer.error.message
        answer.model_dump_json()


@pytest.mark.parametrize(
    "text",
    [
        request(params={"name": "facts"}),
        '{"jsonrpc": "2.0", "method": "notifications/x"}',
        '{"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": "\\ud800"}}',
        '{"jsonrpc": "2.0", "id": 7, "result": "\\ud800"}',
    ],
)
def test_what_can_be_read_and_what_wants_no_answer_gets_none(text: str) -> None:
    assert unreadable_answer(text) is None
