"""ChatGPT's export, by files of the shape that it has."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from hitherto import Memory
from hitherto.errors import InvalidTranscript
from hitherto.importers import ImportedConversation, ImportSummary, import_file, read_file
from tests.conftest import SCOPE
from tests.importers.looked_at import conversations, payloads, shown, tree, unreadable, written


def node(id: str, parent: str | None, role: str = "", content: object = None, **fields: Any) -> dict[str, Any]:
    """A node of a mapping, without a role one without a message."""
    text = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    told = {"author": {"role": role, "name": None}, "content": text, "recipient": "all", "metadata": {}, **fields}
    message = {"id": id, "create_time": 1_700_000_000.5, **told} if role else None
    return {"id": id, "parent": parent, "children": [], "message": message}


def exported(*nodes: dict[str, Any], current: str, **fields: Any) -> dict[str, Any]:
    told = {"title": "Lisbon", "create_time": 1_700_000_000.0, "conversation_id": "conv-1", **fields}
    return {**told, "current_node": current, "mapping": {one["id"]: one for one in nodes}}


TRIP = exported(
    node("root", None),
    node("hidden", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
    node("context", "hidden", "user", {"content_type": "user_editable_context", "user_profile": "A sailor."}),
    node("asks", "context", "user", "How many days?"),
    node("first", "asks", "assistant", "Two."),
    node("second", "asks", "assistant", "Three.", create_time=1_700_000_060),
    node("thanks", "second", "user", "Thanks."),
    current="thanks",
)


def test_the_current_branch_and_the_others(tmp_path: Path) -> None:
    (one,) = conversations(written(tmp_path / "any.name", [TRIP]))
    assert (one.format, one.id, one.title) == ("ChatGPT's export", "conv-1", "Lisbon")
    assert shown(one) == [("user", "How many days?"), ("assistant", "Three."), ("user", "Thanks.")]
    parents = {each.message.id: each.parent for each in one.messages}
    assert parents == {"asks": None, "first": "asks", "second": "asks", "thanks": "second"}
    dates = {each.message.id: each.message.said_at for each in one.messages}
    assert dates["second"] == datetime.fromtimestamp(1_700_000_060, UTC)


def test_tools_thoughts_and_pictures(tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-9", "width": 8}
    attached = {"attachments": [{"id": "file-9", "name": "boat.png"}, {"id": "f", "name": "plan.pdf"}]}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Sums", "content": "1 + 1"}]}
    code = {"content_type": "code", "language": "python", "text": "1 + 1"}
    output = {"content_type": "execution_output", "text": "2"}
    seen = {"content_type": "multimodal_text", "parts": [picture, "What is it?"]}
    of = exported(
        node("a", None, "user", seen, metadata=attached),
        node("b", "a", "assistant", thoughts),
        node("c", "b", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 2s"}),
        node("d", "c", "assistant", code, recipient="python"),
        node("e", "d", "tool", output, author={"role": "tool", "name": "python"}),
        node("f", "e", "tool", {"content_type": "tether_quote", "title": "Sums", "url": "https://s.org", "text": "II"}),
        node("g", "f", "assistant", "Two."),
        current="g",
    )
    (one,) = conversations(written(tmp_path / "x", [of]))
    assert payloads(one)[:4] == [
        {"role": "user", "content": "[image: boat.png]\nWhat is it?\n[attachment: plan.pdf]"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Sums\n1 + 1"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "d", "type": "function", "function": {"name": "python", "arguments": '{"input": "1 + 1"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "d", "content": "2"},
    ]


async def test_it_is_imported_once(memory: Memory, tmp_path: Path) -> None:
    """A second answer of a tool to one call is kept as a text."""
    of = exported(
        node("a", None, "user", "1 + 1?"),
        node("b", "a", "assistant", {"content_type": "code", "text": "{}"}, recipient="python"),
        node("c", "b", "tool", "2"),
        node("d", "c", "tool", "two"),
        current="d",
    )
    packed = tmp_path / "export.zip"
    with ZipFile(packed, "w", ZIP_DEFLATED) as to:
        to.writestr("user.json", "{}")
        to.writestr("chats/conversations-000.json", written(tmp_path / "x", [of]).read_text())
    assert await import_file(memory, packed, scope=SCOPE) == ImportSummary(conversations=1, messages=4)
    assert await import_file(memory, packed, scope=SCOPE) == ImportSummary(skipped=1)
    chat = memory.conversation("conv-1", scope=SCOPE)
    assert [one.message.role.value for one in await chat.messages()] == ["user", "assistant", "tool", "assistant"]
    assert await tree(chat) == {"a": None, "b": "a", "c": "b", "d": "c"}
    info = await chat.info()
    assert info is not None
    assert (info.title, info.said_at) == ("Lisbon", datetime.fromtimestamp(1_700_000_000.5, UTC))


async def test_a_file_that_has_grown(memory: Memory, tmp_path: Path) -> None:
    """What is new is added, on whichever branch. What is shown goes on with it, if it is right behind that."""
    file = tmp_path / "conversations.json"
    await import_file(memory, written(file, [TRIP]), scope=SCOPE)
    grown = [
        *TRIP["mapping"].values(),
        node("again", "first", "user", "Only two?"),
        node("no", "again", "assistant", "Yes."),
    ]
    summary = await import_file(memory, written(file, [exported(*grown, current="thanks")]), scope=SCOPE)
    assert summary == ImportSummary(conversations=1, messages=2)
    chat = memory.conversation("conv-1", scope=SCOPE)
    assert [one.id for one in (await chat.transcript()).entries] == ["asks", "second", "thanks"]
    assert (await tree(chat))["again"] == "first"
    later = [*grown, node("year", "no", "user", "And in May?"), node("home", "thanks", "user", "Good to know.")]
    (told,) = (await import_file(memory, written(file, [exported(*later, current="year")]), scope=SCOPE)).notes
    assert "1 message came as a branch that is not shown" in told
    assert [one.id for one in (await chat.transcript()).entries] == ["asks", "second", "thanks"]
    assert told.endswith("hitherto branches conv-1 --switch 7")
    await chat.switch(7)
    assert [one.id for one in (await chat.transcript()).entries] == ["asks", "first", "again", "no", "year"]
    await chat.switch(3)
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=1)
    assert [one.id for one in (await chat.transcript()).entries][-1] == "thanks"
    last = node("bye", "home", "user", "Bye.")
    await import_file(memory, written(file, [exported(*later, last, current="bye")]), scope=SCOPE)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    bad = exported(node("a", None, "user", "Hi."), node("b", "a", "wizard", "Ho."), current="b", title="Magic")
    loop = exported(node("a", "b", "user", "Hi."), node("b", "a", "user", "Ho."), current="b", conversation_id="c2")
    nameless = exported(node("a", None, "user", "Hi."), current="a", conversation_id=7)
    told = unreadable(written(tmp_path / "x", [bad, 3, loop, nameless]))
    assert "'Magic', message 2 (b): a chat message has the role 'wizard'" in told[0]
    assert "entry 2 of its list is no conversation" in told[1]
    assert "its parents go in a circle" in told[2]
    assert "has no name that can be kept" in told[3]
    file = tmp_path / "cut"
    file.write_bytes(written(tmp_path / "x", [TRIP, TRIP]).read_bytes()[:-40])
    assert "entry 2 is not JSON" in unreadable(file)[0]


def test_a_message_that_is_missing(tmp_path: Path) -> None:
    """What follows it goes on from the one that has it as a child, else from the one before it in the file."""
    nodes = [node("a", None, "user", "Hi."), node("b", "a", "assistant", "Ho."), node("d", "c", "user", "And?")]
    for children, parent in (([], "b"), (["b", "c"], "a")):
        nodes[0]["children"] = children
        (one,) = read_file(written(tmp_path / "x", [exported(*nodes, current="d")]))
        assert isinstance(one, ImportedConversation)
        assert {each.message.id: each.parent for each in one.messages} == {"a": None, "b": "a", "d": parent}
        assert "message 3 (d): the message before it, 'c', cannot be read" in one.unreadable[0].words


def test_what_has_another_shape_is_told(tmp_path: Path) -> None:
    """And a text in it is kept."""
    nodes = [
        node("a", None, "user", "Hi."),
        node("b", "a", "assistant", {"content_type": "of the future", "text": "Words."}),
        node("c", "b", "assistant", {"content_type": "of the future", "body": 1}),
        node("d", "c", "user", 7),
        {"id": "e", "parent": "d", "message": "Words."},
        node("f", "d", "user", {"content_type": "text", "parts": ["One.", 2]}),
    ]
    file = written(
        tmp_path / "x",
        [exported(*nodes, current="f"), {**exported(current="a"), "mapping": nodes, "title": "List"}],
    )
    told = unreadable(file)
    places = ["message 3 (c): ", "message 4 (d): ", "message 5 (e): ", "message 6 (f): ", "'List': its mapping is"]
    assert [place in words for place, words in zip(places, told, strict=True)] == [True] * 5
    (one, _) = read_file(file)
    assert isinstance(one, ImportedConversation)
    assert [each.message.text for each in one.messages] == ["Hi.", "Words.", "One."]


def test_zip_files_that_are_traps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitherto.importers.files._LARGE", 2**20)
    other, bomb = tmp_path / "other.zip", tmp_path / "bomb.zip"
    with ZipFile(other, "w") as to:
        to.writestr("readme.txt", "x")
    with pytest.raises(InvalidTranscript, match="without a conversations"):
        conversations(other)
    with ZipFile(bomb, "w", ZIP_DEFLATED) as to, to.open("conversations.json", "w", force_zip64=True) as member:
        member.write(b" " * 2**21)
    assert "left out" in unreadable(bomb)[0]
    many = tmp_path / "many.zip"
    with ZipFile(many, "w", ZIP_DEFLATED) as to:
        for number in range(5):
            to.writestr(f"{number}/conversations.json", b"[" + b" " * 2**19 + b"]")
    assert ["left out" in one for one in unreadable(many)] == [False, True]
    broken = tmp_path / "broken.zip"
    broken.write_bytes(bomb.read_bytes()[:1000])
    with pytest.raises(InvalidTranscript, match="cannot be read"):
        conversations(broken)
