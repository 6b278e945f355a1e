"""Claude.ai's export, by files of the shape that it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hitherto import Memory
from hitherto.importers import ImportedConversation, ImportSummary, import_file, read_file
from tests.conftest import SCOPE
from tests.importers.looked_at import conversations, payloads, shown, tree, unreadable, written


def said(uuid: str, sender: str, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    at = "2025-05-01T09:00:00.000000Z"
    return {"uuid": uuid, "text": "", "content": list(content), "sender": sender, "created_at": at, **fields}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "citations": []}


def exported(*messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return [{"uuid": "c-1", "name": "Boats", "chat_messages": list(messages), **fields}]


async def test_tools_thoughts_and_attachments(memory: Memory, tmp_path: Path) -> None:
    file = written(
        tmp_path / "x",
        exported(
            said(
                "m1", "human", text("Which boat?"), attachments=[{"file_name": "b.txt", "extracted_content": "A list."}]
            ),
            said(
                "m2",
                "assistant",
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "name": "search", "input": {"q": "boats"}},
                {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "The Ansa."}]},
                text("The Ansa."),
            ),
            said("m3", "human", text("Thanks."), files=[{"file_name": "boat.png"}]),
        ),
    )
    (one,) = conversations(file)
    assert (one.id, one.title) == ("c-1", "Boats")
    assert payloads(one) == [
        {"role": "user", "content": "Which boat?\n\n[attachment: b.txt]\nA list."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "m2-2", "name": "search", "input": {"q": "boats"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "m2-2", "content": [{"type": "text", "text": "The Ansa."}]}
            ],
        },
        {"role": "assistant", "content": "The Ansa."},
        {"role": "user", "content": "Thanks.\n\n[file: boat.png]"},
    ]
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=1, messages=5)
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=1)
    parents = await tree(memory.conversation("c-1", scope=SCOPE))
    assert parents == {"m1": None, "m2": "m1", "m2#2": "m2", "m2#3": "m2#2", "m3": "m2#3"}


def test_branches(tmp_path: Path) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    of = exported(
        said("a", "human", text("Hi."), parent_message_uuid=root),
        said("b", "assistant", text("Yes?"), parent_message_uuid="a"),
        said("c", "assistant", text("Hello."), parent_message_uuid="a"),
        current_leaf_message_uuid="b",
    )
    (one,) = conversations(written(tmp_path / "x", of))
    assert shown(one) == [("user", "Hi."), ("assistant", "Yes?")]
    assert {each.message.id: each.parent for each in one.messages} == {"a": None, "b": "a", "c": "a"}


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    of = exported(said("a", "robot", text("Hi.")), said("b", "human", text="Older exports have this."))
    (told,) = unreadable(written(tmp_path / "x", of))
    assert "'Boats', message 1 (a)" in told


def test_what_has_another_shape_is_told(tmp_path: Path) -> None:
    """And a text in it is kept."""
    messages: list[Any] = [
        said("a", "human", text("Hi.")),
        7,
        {**said("b", "assistant"), "content": ["Words.", 7]},
        said("c", "human", {"type": "of the future", "text": "Later words."}, files="x"),
        said("d", "assistant", text("Ho."), parent_message_uuid="gone"),
    ]
    file = written(tmp_path / "x", [*exported(*messages), {"uuid": "c-2", "name": "List", "chat_messages": "x"}])
    told = unreadable(file)
    places = ["'Boats', message 2: ", "message 3 (b)", "message 4 (c)", "message 5 (d)", "'List': its chat_messages"]
    assert [place in words for place, words in zip(places, told, strict=True)] == [True] * 5
    (one, _) = read_file(file)
    assert isinstance(one, ImportedConversation)
    assert [each.message.text for each in one.messages] == ["Hi.", "Words.", "Later words.", "Ho."]
    assert [each.parent for each in one.messages] == [None, "a", "b", "c"]
