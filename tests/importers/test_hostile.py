"""Files that are made to do harm, and JSON of any kind: read, or told where it cannot be, and bounded."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.errors import InvalidTranscript
from hitherto.importers import ImportedConversation, imported, json_stream, read_file
from hitherto.importers.files import read_opened
from hitherto.importers.json_stream import list_elements
from tests.importers.looked_at import unreadable, written
from tests.importers.test_chatgpt import TRIP
from tests.importers.test_claude_ai import exported, said, text
from tests.importers.test_claude_code import WORK

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


class Slow(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(7)


@settings(max_examples=20)
@given(st.lists(values), st.booleans())
def test_a_list_is_read_value_by_value(listed: list[object], wide: bool) -> None:
    data = json.dumps(listed, indent=1 if wide else None, ensure_ascii=wide).encode("utf-8", "replace")
    assert [one.value for one in list_elements(Slow(data))] == json.loads(data)


@settings(max_examples=20)
@given(st.lists(values, min_size=1), st.integers(1, 30))
def test_a_list_that_is_cut_off_gives_what_comes_before(listed: list[object], cut: int) -> None:
    data = json.dumps(listed).encode()[:-cut]
    found: list[object] = []
    with pytest.raises(InvalidTranscript):
        found.extend(one.value for one in list_elements(Slow(data)))
    assert found == listed[: len(found)]


def test_a_value_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no JSON is told at once; a text that does not end, once it is too long."""
    monkeypatch.setattr(json_stream, "LARGEST", 10_000)

    class Endless(io.RawIOBase):
        given = 0

        def __init__(self, begin: bytes, rest: bytes) -> None:
            self._begin, self._rest = begin, rest

        def read(self, size: int = -1) -> bytes:
            begin, self._begin = self._begin, b""
            self.given += 1
            return begin or self._rest * 1_000

    for begin, rest, words in (
        (b'["', b"x", "longer than"),
        (b"[{'a'", b" ", r"not JSON \("),
        (b"[" * 99_999, b"[", "read"),
    ):
        file = Endless(begin, rest)
        with pytest.raises(InvalidTranscript, match=words):
            list(list_elements(cast("BinaryIO", file)))
        assert file.given < 40


def pieces(value: object) -> Iterator[tuple[Any, Any]]:
    """Each list and object in a value, with each place in it."""
    if isinstance(value, dict):
        yield from ((value, key) for key in value)
        yield from (one for inner in value.values() for one in pieces(inner))
    elif isinstance(value, list):
        yield from ((value, place) for place in range(len(value)))
        yield from (one for inner in value for one in pieces(inner))


@pytest.mark.parametrize("name", ["chatgpt", "claude", "code"])
@given(data=st.data())
def test_any_value_in_any_place(name: str, data: st.DataObject) -> None:
    """A field of another type than it has: what can be read is, what cannot is told, and nothing else happens."""
    whole = {"chatgpt": [TRIP], "claude": exported(said("m", "human", text("Hi."), text("Ho."))), "code": WORK}[name]
    given = json.loads(json.dumps(whole))
    inside, at = data.draw(st.sampled_from(list(pieces(given))))
    inside[at] = data.draw(values | st.just("\ud800") | st.just(float("nan")) | st.just(1e300) | st.just([{}]))
    lines = name == "code"
    file = io.BytesIO(b"\n".join(json.dumps(one).encode() for one in (given if lines else [given])))
    found = list(read_opened(file, Path("x")))
    assert found
    for one in found:
        if isinstance(one, ImportedConversation):
            ids = [each.message.id for each in one.messages]
            assert len(set(ids)) == len(ids)


def test_deep_nesting_in_a_message(tmp_path: Path) -> None:
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    told = unreadable(written(tmp_path / "x", [{"role": "user", "content": "Hi."}, {"role": "user", "content": deep}]))
    assert len(told) == 1
    assert "message 2: the message is nested deeper than 100 levels" in told[0]


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitherto.importers.items.LARGEST", 1_000)
    long, short = {"role": "user", "content": "x" * 5_000}, {"role": "user", "content": "Hi."}
    file = written(tmp_path / "x.jsonl", [short, long, short])
    (told,) = unreadable(file)
    assert "line 2: it is longer than 1,000 bytes" in told
    assert [len(list(one.messages)) for one in read_file(file) if isinstance(one, ImportedConversation)] == [2]


def test_a_transcript_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitherto.importers.claude_code.LARGEST", 100)
    assert "its conversation is larger than 100 characters" in unreadable(written(tmp_path / "x.jsonl", WORK))[0]
    assert imported.LARGEST > 100


def test_as_many_messages_as_there_are(tmp_path: Path) -> None:
    """A tree is read in one pass: neither its depth nor its width makes it slow, or fails."""
    mapping: dict[str, Any] = {}
    for number in range(5_000):
        told = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Hi."]}}
        parent = f"n{number - 1}" if number % 2 else f"n{max(number - 2, 0)}"
        mapping[f"n{number}"] = {"parent": parent if number else None, "message": told}
    value = {"conversation_id": "c", "title": "x", "mapping": mapping, "current_node": "n4998"}
    (found,) = [one for one in read_file(written(tmp_path / "x", [value])) if isinstance(one, ImportedConversation)]
    assert len(list(found.messages)) == 5_000
