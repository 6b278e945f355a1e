"""Transcript files as they come: read whole, or refused with the place that is wrong, and never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.cli.transcripts.transcript import FileConversation, parse
from hitherto.core.log.message import Kind
from hitherto.errors import InvalidTranscript

FILE = Path("talk.jsonl")

ASKS = {"role": "user", "content": "Is it raining?"}
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
SAYS = {"role": "assistant", "content": "It is."}


def lines(*items: object) -> bytes:
    return "\n".join(json.dumps(item) for item in items).encode()


def sample(**changes: Any) -> dict[str, Any]:
    dialogue = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kite", "query": "never shown"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice."},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Still there?"}],
        "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "Hello again."}],
        "session_3_date_time": "a date without its session",
    }
    return {"sample_id": "conv-1", "conversation": {**dialogue, **changes}}


def only(transcripts: list[FileConversation]) -> FileConversation:
    (one,) = transcripts
    return one


def test_items_of_other_apis() -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is it raining?"}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]},
        SAYS,
    ]
    for written in (lines(*items), json.dumps(items).encode()):
        read = only(parse(written, FILE))
        assert [message.payload for message in read.messages] == items
        assert {message.wire for message in read.messages} == {"openai.responses", "anthropic", "openai.chat"}


def test_chat_lines_are_kept_to_the_byte() -> None:
    items = [ASKS, CALLS, RESULT, SAYS, {**ASKS, "name": "ada", "vendor": {"z": -0.0, "a": "\ud800\x00"}}]
    read = only(parse(lines(*items), FILE))
    assert read.id == "talk"
    assert [message.payload for message in read.messages] == items
    assert [json.dumps(message.payload) for message in read.messages] == [json.dumps(item) for item in items]
    assert [message.kind for message in read.messages] == [
        Kind.TEXT,
        Kind.TOOL_CALL,
        Kind.TOOL_RESULT,
        Kind.TEXT,
        Kind.TEXT,
    ]


@pytest.mark.parametrize(
    "written",
    [
        b"\xef\xbb\xbf" + lines(ASKS, SAYS),
        lines(ASKS, SAYS).replace(b"\n", b"\r\n") + b"\r\n",
        b"\n\n" + lines(ASKS, SAYS).replace(b"\n", b"\n \t\n") + b"\n\n",
    ],
    ids=["byte order mark", "Windows line ends", "blank lines"],
)
def test_what_editors_add_does_no_harm(written: bytes) -> None:
    assert [message.payload for message in only(parse(written, FILE)).messages] == [ASKS, SAYS]


def test_a_file_may_begin_with_a_title() -> None:
    read = only(parse(b"\n" + lines({"title": " Rain "}, ASKS), FILE))
    assert (read.title, [message.payload for message in read.messages]) == ("Rain", [ASKS])
    assert only(parse(lines({**ASKS, "title": "of the item"}), FILE)).title is None
    for wrong in (lines({"title": 7}, ASKS), lines({"title": "x" * 501}, ASKS), lines(ASKS, {"title": "late"})):
        with pytest.raises(InvalidTranscript, match=r"line [12]: "):
            parse(wrong, FILE)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b'{"role": "user", "content": "cut o', "not JSON"),
        (b"{'role': 'user'}", "not JSON"),
        (b'{"role": "user", "content": "\xff\xfe"}', "not UTF-8"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"role": "user", "content": ' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper"),
        (b"17", "not an object"),
        (b'{"role": "wizard", "content": "x"}', "has the role 'wizard'"),
        (b'{"content": "x"}', "has the role None"),
        (b'{"role": "user"}', "needs content"),
        (b'{"role": "user", "content": NaN}', "not JSON"),
        (b'{"role": "user", "content": "x", "score": NaN}', "not JSON"),
        (b'{"role": "assistant"}', "needs content or tool_calls"),
        (b'{"role": "assistant", "tool_calls": [{"id": 5}]}', "id"),
        (b'{"role": "tool", "tool_call_id": "c9", "content": "x"}', "no such call"),
        (b'{"role": "tool", "tool_call_id": "c1", "content": "again"}', "no such call"),
    ],
)
def test_a_bad_line_is_named(bad: bytes, said: str) -> None:
    written = lines(ASKS, CALLS, RESULT) + b"\n\n" + bad + b"\n" + lines(SAYS)
    with pytest.raises(InvalidTranscript, match="nothing of the file was used") as caught:
        parse(written, FILE)
    assert caught.value.line == 5
    assert "line 5: " in str(caught.value)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "holds no messages"),
        (b" \n\n\t", "holds no messages"),
        (json.dumps(ASKS).encode("utf-16"), "UTF-16"),
        (b"[[", "is not JSON"),
        (b"[[NaN]]", "is not JSON"),
        (b"[[], 3]", "talk-0 is no list of messages"),
        (json.dumps([[ASKS], SAYS]).encode(), "talk-1 is no list of messages"),
        (json.dumps([[ASKS], [SAYS, 3]]).encode(), "talk-1, message 2: "),
        (json.dumps([[ASKS, SAYS, RESULT]]).encode(), "talk-0, message 3: the result of tool call 'c1'"),
        (b"[", "is not JSON"),
        (b"[]", "has no conversation"),
        (b"[3]", "message 1: this is JSON, but not an object"),
        (json.dumps([sample(), sample()]).encode(), "a text of its own"),
        (json.dumps([{**sample(), "sample_id": 26}]).encode(), "a text of its own"),
        (json.dumps([{**sample(), "sample_id": " "}]).encode(), "none can be kept"),
        (json.dumps([{**sample(), "sample_id": "x" * 201}]).encode(), "none can be kept"),
        (json.dumps([{"sample_id": "x", "conversation": {}}]).encode(), "speaker_a"),
        (json.dumps([{"sample_id": "x", "conversation": {"speaker_a": "A", "speaker_b": "B"}}]).encode(), "session_1"),
        (json.dumps([sample(session_2=None)]).encode(), "session_2 is not a list"),
        (json.dumps([sample(session_2=[5])]).encode(), "session_2, turn 1 is unusable"),
        (json.dumps([sample(session_2=[{"speaker": "Ada"}])]).encode(), "not text"),
        (json.dumps([sample(session_2=[{"speaker": "Eve", "text": "x"}])]).encode(), "its speaker is 'Eve'"),
        (json.dumps([sample(session_1_date_time=float("nan"))]).encode(), "NaN"),
    ],
)
def test_a_bad_file_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(InvalidTranscript, match=r"talk\.jsonl") as caught:
        parse(data, FILE)
    assert said in str(caught.value)


def test_a_list_of_conversations() -> None:
    data = json.dumps([[ASKS, CALLS, RESULT, SAYS], [ASKS]], indent=1).encode()
    first, second = parse(data, FILE)
    assert (first.id, second.id) == ("talk-0", "talk-1")
    assert [message.payload for message in first.messages] == [ASKS, CALLS, RESULT, SAYS]
    assert parse(data, FILE, conversation="talk-1") == [second]
    with pytest.raises(InvalidTranscript, match="has no conversation 'talk-2'; it has talk-0, talk-1"):
        parse(data, FILE, conversation="talk-2")


def test_locomo_in_the_order_of_its_sessions() -> None:
    read = only(parse(json.dumps([sample()]).encode(), FILE))
    assert read.id == "conv-1"
    assert [message.payload for message in read.messages] == [
        {"role": "user", "content": "Look!\n[shares a picture: a red kite]"},
        {"role": "assistant", "content": "Nice."},
        {"role": "user", "content": "Hello again."},
        {"role": "assistant", "content": "Still there?"},
    ]
    assert read.messages[0].metadata == {
        "dia_id": "D1:1",
        "session": 1,
        "date": "1:56 pm on 8 May, 2023",
    }


def test_one_conversation_of_a_file_or_all() -> None:
    many = json.dumps([sample(), {**sample(), "sample_id": "conv-2"}]).encode()
    assert [one.id for one in parse(many, FILE)] == ["conv-1", "conv-2"]
    assert [one.id for one in parse(many, FILE, conversation="conv-2")] == ["conv-2"]
    with pytest.raises(InvalidTranscript, match=r"no conversation 'conv-3'; it has conv-1, conv-2"):
        parse(many, FILE, conversation="conv-3")
    assert only(parse(lines(ASKS), FILE, conversation="talk")).id == "talk"
    with pytest.raises(InvalidTranscript, match="leave --conversation out"):
        parse(lines(ASKS), FILE, conversation="conv-1")


def read_or_refused(data: bytes) -> None:
    """Nothing but InvalidTranscript comes out, and what is read has all that a replay needs."""
    try:
        found = parse(data, FILE)
    except InvalidTranscript:
        return
    assert found
    assert len({one.id for one in found}) == len(found)
    for one in found:
        assert one.messages


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    read_or_refused(data)
    read_or_refused(b"[" + data)
    read_or_refused(lines(ASKS) + b"\n" + data)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "tool", "system", "function", "x"]) | json_values},
            optional={
                "content": json_values,
                "tool_calls": json_values | st.just(CALLS["tool_calls"]),
                "tool_call_id": json_values | st.just("c1"),
                "name": json_values,
            },
        )
        | json_values,
        max_size=5,
    )
)
def test_any_chat_items(items: list[object]) -> None:
    read_or_refused(lines(*items))
    read_or_refused(json.dumps([items]).encode())


@given(
    st.lists(
        st.builds(
            lambda changes, name: {**sample(**changes), "sample_id": name},
            st.dictionaries(
                st.sampled_from(["speaker_a", "speaker_b", "session_1", "session_2", "session_1_date_time"]),
                json_values
                | st.lists(
                    st.fixed_dictionaries(
                        {"speaker": st.sampled_from(["Ada", "Bo"]) | json_values, "text": json_values},
                        optional={"blip_caption": json_values, "dia_id": json_values},
                    ),
                    max_size=3,
                ),
            ),
            st.text(max_size=3) | json_values,
        )
        | json_values,
        max_size=3,
    )
)
def test_any_locomo_samples(samples: list[object]) -> None:
    read_or_refused(json.dumps(samples).encode())
