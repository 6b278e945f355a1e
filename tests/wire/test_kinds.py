"""Each kind of item that the APIs know has a rule: what it says, and how other formats say it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import pytest
import typing_extensions
from anthropic.types.beta.beta_content_block_param import BetaContentBlockParam
from anthropic.types.tool_result_block_param import Content as AnthropicResult
from openai.types.chat.chat_completion_content_part_param import ChatCompletionContentPartParam
from openai.types.responses.response_input_content_param import ResponseInputContentParam
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from openai.types.responses.response_output_message_param import Content as ResponsesAnswer
from pydantic import BaseModel

from hitherto import user
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload, Wire
from hitherto.testing.requests import refusals
from hitherto.wire import codec, read
from hitherto.wire.neutral import text_of
from tests.wire.samples import DATA, SAMPLES, UNREAD

WIRES: tuple[Wire, ...] = (CHAT, RESPONSES, ANTHROPIC)
EACH = [(wire, kind) for wire in WIRES for kind in SAMPLES[wire]]
UNIONS: dict[str, tuple[Any, ...]] = {
    CHAT: (ChatCompletionContentPartParam,),
    RESPONSES: (ResponseInputItemParam, ResponseInputContentParam, ResponsesAnswer),
    ANTHROPIC: (BetaContentBlockParam, AnthropicResult),
}
"""The SDKs' types: of items, of parts, of blocks."""

PLACE = {"start_index": 3, "end_index": 10}
LEASE = {"type": "text", "media_type": "text/plain", "data": "It ends in May."}


def answered(kind: str, **cited: Any) -> Payload:
    return {"role": "assistant", "content": [{"type": kind, "text": "At 8.", **cited}]}


def known(union: Any) -> Iterator[str]:
    """The kinds that a type of the SDK names."""
    for member in _members(union):
        if issubclass(member, BaseModel):
            kind: Any = member.model_fields["type"].annotation
        else:
            kind = typing_extensions.get_type_hints(member).get("type")
        while get_origin(kind) in (Required, NotRequired, Annotated, Union):
            kind = get_args(kind)[0]
        yield from get_args(kind) if get_origin(kind) is Literal else ()


def _members(union: Any) -> Iterator[Any]:
    if get_origin(union) is Annotated:
        yield from _members(get_args(union)[0])
    elif get_args(union):
        for member in get_args(union):
            yield from _members(member)
    else:
        yield union


def sampled(found: Any) -> Iterator[str]:
    """The kinds in samples: of items, of their parts, of the parts of results."""
    for item in found:
        if isinstance(item, dict):
            yield item.get("type", "")
            yield from sampled(item.get("content") or ())


@pytest.mark.parametrize("wire", WIRES)
def test_every_kind_of_the_sdk_has_a_sample(wire: str) -> None:
    kinds = {kind for items, _ in SAMPLES[wire].values() for kind in sampled(items)}
    assert {kind for union in UNIONS[wire] for kind in known(union)} - kinds == set()


@pytest.mark.parametrize(("wire", "kind"), EACH)
def test_it_comes_back_equal_and_the_api_takes_it(wire: Wire, kind: str) -> None:
    items, _ = SAMPLES[wire][kind]
    messages = [read(item, wire) for item in items]
    assert [codec(wire).write([message]) for message in messages] == [[item] for item in items]
    if kind not in UNREAD:
        assert refused(wire, codec(wire).sendable(codec(wire).write([user("Go on."), *messages]))) == []


@pytest.mark.parametrize(("wire", "kind"), EACH)
def test_its_words_and_calls_are_in_the_text_and_in_the_other_formats(wire: Wire, kind: str) -> None:
    items, words = SAMPLES[wire][kind]
    messages = [read(item, wire) for item in items]
    text = "\n".join(one.text for one in messages)
    assert [word for word in words.split() if word not in text and kind != "name"] == []
    for other in WIRES:
        if other != wire:
            written = codec(other).sendable(codec(other).write([user("Go on."), *messages]))
            shown = "\n".join(text_of(item, other) for item in written)
            assert [word for word in words.split() if word not in shown] == [], other
            again = [read(item, other) for item in written]
            assert {call for one in again for call in one.calls} == {call for one in messages for call in one.calls}
            assert {call for one in again for call in one.answers} == {call for one in messages for call in one.answers}
            assert refused(other, written) == [], other


@pytest.mark.parametrize(
    ("wire", "item", "words"),
    [
        (
            CHAT,
            {
                "role": "assistant",
                "content": "At 8.",
                "annotations": [{"type": "url_citation", "url_citation": {**PLACE, "url": "u", "title": "Oshima"}}],
            },
            "At 8.\n[sources: u; Oshima]",
        ),
        (
            RESPONSES,
            answered("output_text", annotations=[{"type": "file_citation", "index": 18, "filename": "lease.pdf"}]),
            "At 8.\n[sources: lease.pdf]",
        ),
        (
            ANTHROPIC,
            answered("text", citations=[{"type": "char_location", "cited_text": "8.", "document_index": 0, **PLACE}]),
            "At 8.\n[sources: 8.]",
        ),
        (
            RESPONSES,
            {
                "type": "file_search_call",
                "id": "fs_1",
                "queries": ["q"],
                "results": [{"file_id": "f", "filename": "lease.pdf", "score": 0.9, "attributes": {"price": 7}}],
            },
            '[calls file_search({"queries":["q"]})]\nlease.pdf\nprice: 7',
        ),
        (
            ANTHROPIC,
            {"role": "user", "content": [{"type": "document", "source": LEASE, "citations": {"enabled": True}}]},
            "It ends in May.",
        ),
    ],
)
def test_what_is_cited_or_found_is_words_not_places_and_ranks(wire: Wire, item: Payload, words: str) -> None:
    message = read(item, wire)
    assert message.text == words
    for other in WIRES:
        if other != wire:
            written = codec(other).sendable(codec(other).write([message]))
            assert "sources" not in words or [text_of(one, other) for one in written] == [words]


CITES = {"type": "char_location", "document_index": 0, **PLACE}


def test_an_answer_that_cites_is_one_text() -> None:
    texts: list[Payload] = [
        {"type": "text", "text": text} for text in ("It says that ", "grass is green", " and ", "wet.")
    ]
    texts[1]["citations"] = [{**CITES, "cited_text": "Green grass."}]
    texts[3]["citations"] = [{**CITES, "cited_text": "Wet grass."}]
    message = read({"role": "assistant", "content": texts}, ANTHROPIC)
    said = "It says that grass is green and wet.\n[sources: Green grass.; Wet grass.]"
    assert message.text == said
    for other in (CHAT, RESPONSES):
        (item,) = codec(other).sendable(codec(other).write([message]))
        assert text_of(item, other) == said


def test_the_words_of_a_tool_stand_where_it_ran() -> None:
    texts = [{"type": "text", "text": text} for text in ("I look.", "It sank.")]
    ran: list[Payload] = [
        {"type": "mcp_tool_use", "id": "m", "name": "rent", "server_name": "boats", "input": {}},
        {
            "type": "mcp_tool_result",
            "tool_use_id": "m",
            "is_error": True,
            "content": [{"type": "text", "text": "Sunk."}],
        },
    ]
    call: Payload = {"type": "tool_use", "id": "t", "name": "swim", "input": {}}
    message = read({"role": "assistant", "content": [texts[0], *ran, texts[1], call]}, ANTHROPIC)
    for other in (CHAT, RESPONSES):
        first, record, *rest = codec(other).write([message], unanswered=["t"])
        assert (first["content"], rest[0]["content"]) == ("I look.", "It sank.")
        assert "- [calls boats.rent({})]\n- [error] Sunk.\n" in record["content"]
        assert "swim" in str(rest)


def test_what_was_said_in_a_sound_is_words() -> None:
    sound = {"data": "AAAA", "format": "wav"}
    part = {"type": "input_audio", "input_audio": {**sound, "transcript": "A heron."}}
    message = read({"type": "message", "role": "user", "content": [part]}, RESPONSES)
    assert message.text == "[audio: A heron.]"
    assert codec(ANTHROPIC).write([message]) == [{"role": "user", "content": message.text}]
    assert codec(CHAT).write([message])[0]["content"] == [{"type": "input_audio", "input_audio": sound}]


def test_a_result_of_a_later_kind_has_all_its_words_and_pictures() -> None:
    picture = {"type": "input_image", "image_url": DATA}
    call = read({"type": "foo_call", "call_id": "c"}, RESPONSES)
    result = read(
        {
            "type": "foo_call_output",
            "call_id": "c",
            "output": [picture, {"type": "input_text", "text": "A heron."}],
            "detail": {"shows": {"type": "bird", "seen": [1, None]}, "beside": picture},
            "parts": [{"type": "text", "text": "A bittern."}],
            "note": {"type": "text", "text": "Two.", "by": "Ada"},
            "nothing": None,
        },
        RESPONSES,
    )
    detail = '{"detail":{"shows":{"type":"bird","seen":[1,null]}},"note":{"type":"text","text":"Two.","by":"Ada"}}'
    assert result.text == f"{detail}\n[image]\nA heron.\n[image]\nA bittern."
    (_, item) = codec(ANTHROPIC).write([call, result])
    shown = [block["type"] for block in item["content"][0]["content"]]
    assert shown == ["text", "image", "text", "image", "text"]


def refused(wire: Wire, items: list[Payload]) -> list[str]:
    return refusals(codec(wire).request(system=[], items=items, tools=[]), wire=wire)
