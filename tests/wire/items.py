"""What the tests of all codecs share: a counter, and items that an API would accept."""

from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import strategies as st

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Message
from hitherto.tokens.counters import BpeCounter
from hitherto.wire import CODECS

PNG = "iVBORw0KGgo="
ODD_ARGUMENTS = ["", "  ", "[]", "[1]", '"text"', "null", '{"a": ', '{"a": NaN}', '{"a": 1e999}', "{}", '{"a": 1}']
HOSTILE = ["\0", "\ud800", "\udfff", "<|endoftext|>", "<|im_start|>system", '"}]}', "\\u0000", "\n\n", "\u2028"]


COUNTER = BpeCounter("o200k_base", image_tokens=1_000, low_image_tokens=85)


def as_json(value: Any) -> Any:
    """What JSON makes of a value: two escaped halves of one character become that character."""
    return json.loads(json.dumps(value))


texts = st.lists(st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE)), max_size=4).map("".join).map(as_json)
words = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20)
ids = st.from_regex(r"\A(call|toolu|fc)_[A-Za-z0-9_-]{1,20}\Z")
names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_-]{0,15}\Z")
plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5).map(as_json), inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(st.text(max_size=8).map(as_json), plain_json, max_size=3)
arguments = objects.map(json.dumps) | st.sampled_from(["", "{", "[1]", '{"a": NaN}', '{"a": 1e999}', '"text"'])
extras = st.dictionaries(st.text(max_size=6).map(lambda key: f"x_{as_json(key)}"), plain_json, max_size=2)


Items = st.SearchStrategy[dict[str, Any]]


def shuffled(item: Items) -> Items:
    """The same item with its keys in any order."""
    return item.flatmap(lambda one: st.permutations(list(one.items())).map(dict))


def fixed(**fields: Any) -> Items:
    """An object of these fields, some with unknown ones beside them; a strategy stands for its values."""
    given: dict[str, st.SearchStrategy[Any]] = {}
    for key, one in fields.items():
        given[key] = cast("st.SearchStrategy[Any]", one) if isinstance(one, st.SearchStrategy) else st.just(one)
    known = st.fixed_dictionaries(given)
    return shuffled(st.tuples(extras, known).map(lambda pair: {**pair[0], **pair[1]}))


def chained(first: st.SearchStrategy[list[Any]], then: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[list[Any]]:
    return st.tuples(first, then).map(lambda pair: pair[0] + pair[1])


def some(part: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(part, min_size=1, max_size=3)


def unique(part: st.SearchStrategy[Any], key: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(part, min_size=1, max_size=3, unique_by=lambda one: one[key])


chat_text = fixed(type="text", text=texts)
chat_parts = st.one_of(
    chat_text,
    fixed(
        type="image_url", image_url=fixed(url=st.sampled_from(["https://a.test/b.png", f"data:image/png;base64,{PNG}"]))
    ),
    fixed(type="input_audio", input_audio={"data": "AAAA", "format": "wav"}),
    fixed(type="file", file={"file_id": "file-1"}),
    fixed(type="some_new_part"),
)
chat_calls = st.one_of(
    fixed(id=ids, type="function", function=fixed(name=names, arguments=arguments)),
    fixed(id=ids, type="custom", custom=fixed(name=names, input=texts)),
)
chat_items = st.one_of(
    fixed(role=st.sampled_from(["system", "developer"]), content=texts | some(chat_text)),
    fixed(role="user", content=texts | some(chat_parts)),
    fixed(role="user", name=names, content=texts),
    fixed(role="assistant", content=texts | some(chat_text), refusal=None, tool_calls=None),
    fixed(role="assistant", content=None, refusal=texts),
    fixed(role="assistant", content=st.none() | texts, tool_calls=unique(chat_calls, "id")),
    fixed(role="assistant", content=None, function_call=fixed(name=names, arguments=arguments)),
    fixed(role="tool", tool_call_id=ids, content=texts | some(chat_text)),
    fixed(role="function", name=names, content=st.none() | texts),
)

responses_parts = st.one_of(
    fixed(type="input_text", text=texts),
    fixed(
        type="input_image", image_url=f"data:image/png;base64,{PNG}", detail=st.sampled_from(["auto", "low", "high"])
    ),
    fixed(type="input_image", file_id="file-1", detail="auto"),
    fixed(type="input_file", file_id="file-2"),
)
output_texts = fixed(type="output_text", text=texts, annotations=[], logprobs=[])
responses_items = st.one_of(
    fixed(role=st.sampled_from(["user", "system", "developer", "assistant"]), content=texts),
    fixed(type="message", role="user", content=some(responses_parts)),
    fixed(type="message", id="msg_1", status="completed", role="assistant", content=some(output_texts)),
    fixed(type="message", role="assistant", content=some(fixed(type="refusal", refusal=texts))),
    fixed(type="function_call", id="fc_1", call_id=ids, name=names, arguments=arguments),
    fixed(type="custom_tool_call", call_id=ids, name=names, input=texts),
    fixed(type="function_call_output", call_id=ids, output=texts | some(responses_parts)),
    fixed(type="custom_tool_call_output", call_id=ids, output=texts),
    fixed(type="reasoning", id="rs_1", summary=[], encrypted_content=texts),
    fixed(type="reasoning", id="rs_1", summary=some(fixed(type="summary_text", text=texts))),
    fixed(type="compaction", encrypted_content=texts),
    fixed(type="compaction", id="cmp_1", encrypted_content=texts),
    fixed(type="compaction_trigger"),
    fixed(type="item_reference", id="msg_1"),
    st.just({"id": "msg_1"}),
    fixed(type="message", id="msg_1", status="incomplete", role="assistant", content=[]),
    fixed(type="function_call_output", call_id=st.none(), name=names, output=texts),
    fixed(type="web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "q"}),
    fixed(type="image_generation_call", id="ig_1", status="completed", result=PNG),
    fixed(type="mcp_call", id="mcp_1", name=names, server_label="s", arguments="{}"),
    fixed(type="mcp_approval_response", approval_request_id="mcpr_1", approve=True),
    fixed(type="computer_call", id="cu_1", call_id=ids, action={"type": "wait"}, status="completed"),
    fixed(
        type="computer_call_output", call_id=ids, output={"type": "computer_screenshot", "image_url": "https://a.test"}
    ),
    fixed(type="shell_call", call_id=ids, action={"commands": ["ls"]}),
    fixed(
        type="local_shell_call",
        id="ls_1",
        call_id=ids,
        action={"type": "exec", "command": ["ls"], "env": {"A": "1"}},
        status="completed",
    ),
    fixed(
        type="apply_patch_call",
        call_id=ids,
        operation={"type": "update_file", "path": "a", "diff": "@@\n-a\n+b"},
        status="completed",
    ),
    fixed(type="tool_search_call", call_id=ids, arguments=objects, execution="client"),
    fixed(type="tool_search_output", call_id=ids, tools=[], execution="client"),
    fixed(
        type="shell_call_output", call_id=ids, output=[{"stdout": "a", "stderr": "", "outcome": {"type": "timeout"}}]
    ),
    fixed(type="local_shell_call_output", id=ids, output=texts),
    fixed(type="apply_patch_call_output", call_id=ids, status="completed"),
    fixed(type="apply_patch_call_output", call_id=ids, status="failed", output=texts),
    fixed(type="program", id="p", call_id=ids, code="1", fingerprint=texts),
    fixed(type="program_output", id="p", call_id=ids, result=texts, status="completed"),
)

anthropic_text = fixed(type="text", text=texts)
anthropic_images = st.one_of(
    fixed(type="image", source={"type": "base64", "media_type": "image/png", "data": PNG}),
    fixed(type="image", source={"type": "url", "url": "https://a.test/b.png"}),
    fixed(type="image", source={"type": "file", "file_id": "file_1"}),
)
anthropic_shown = st.one_of(
    anthropic_text,
    anthropic_images,
    fixed(type="document", source=fixed(type="text", media_type="text/plain", data=texts)),
    fixed(type="document", source={"type": "base64", "media_type": "application/pdf", "data": "AAAA"}),
)
anthropic_results = st.one_of(
    fixed(type="tool_result", tool_use_id=ids, content=texts | some(anthropic_shown), is_error=st.booleans()),
    fixed(type="tool_result", tool_use_id=ids),
)
anthropic_uses = fixed(type="tool_use", id=ids, name=names, input=objects)
anthropic_thoughts = st.one_of(
    fixed(type="thinking", thinking=texts, signature=texts),
    fixed(type="redacted_thinking", data=texts),
    fixed(type="server_tool_use", id="srvtoolu_1", name="web_search", input={"query": "q"}),
    fixed(type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
)
anthropic_items = st.one_of(
    fixed(role=st.sampled_from(["user", "assistant"]), content=texts),
    fixed(role="user", content=some(anthropic_shown)),
    fixed(role="user", content=unique(anthropic_results, "tool_use_id")),
    fixed(role="user", content=chained(unique(anthropic_results, "tool_use_id"), some(anthropic_shown))),
    fixed(role="assistant", content=some(anthropic_thoughts)),
    fixed(role="assistant", content=some(anthropic_thoughts | anthropic_text)),
    fixed(
        role="assistant",
        content=chained(st.lists(anthropic_thoughts | anthropic_text, max_size=2), unique(anthropic_uses, "id")),
    ),
)

ITEMS = {CHAT: chat_items, RESPONSES: responses_items, ANTHROPIC: anthropic_items}
any_message: st.SearchStrategy[Message] = st.one_of(*(items.map(CODECS[wire].read) for wire, items in ITEMS.items()))
