"""Files that are made to do harm, and JSON of any kind: read, or told where it cannot be, and bounded."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.errors import InvalidTranscript
from hitherto.importers import ImportedConversation, imported, json_stream, read_file
from hitherto.importers.files import read_opened
from hitherto.importers.json_stream import list_elements
from tests.importers.looked_at import shown, unreadable, written
from tests.importers.test_chatgpt import TRIP
from tests.importers.test_claude_ai import exported, said, text
from tests.importers.test_claude_code import WORK, line

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


def test_a_list_of_too_many_values_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short it is written, and what follows is read; also where each value is packed, and in a line."""
    monkeypatch.setattr(json_stream, "MOST_VALUES", 2**15)
    said: dict[str, Any] = {"role": "user", "content": "Hi."}
    many = {**said, "x": [[]] * 2**16}
    packed = tmp_path / "x.zip"
    with ZipFile(packed, "w", ZIP_DEFLATED) as to:
        to.writestr("conversations.json", json.dumps([many, TRIP]))
    assert ["entry 1" in one and "more than" in one for one in unreadable(packed)] == [True]
    for name, place in (("x.json", "message 2"), ("x.jsonl", "line 2")):
        value = [said, many, said]
        file = written(tmp_path / name, value)
        (told,) = unreadable(file)
        assert place in told
        assert "more than" in told
        assert [len(list(one.messages)) for one in read_file(file) if isinstance(one, ImportedConversation)] == [2]


def test_the_end_of_a_value_of_far_too_many_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would take minutes for a file that is written in a second."""
    monkeypatch.setattr(json_stream, "MOST_VALUES", 2**10)
    monkeypatch.setattr(json_stream, "_SKIPPED_MARKS", 2**12)
    said: dict[str, Any] = {"role": "user", "content": "Hi."}
    for many, words in ((2**11, "more than"), (2**13, "cannot be read for want of its end")):
        (told,) = unreadable(written(tmp_path / "x.json", [said, {**said, "x": [""] * many}, said]))
        assert words in told


def test_what_cannot_be_read_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not kept one by one, which would take more than the file."""
    monkeypatch.setattr(imported, "_TOLD", 3)
    (one,) = [*read_file(written(tmp_path / "x.json", [{"role": "user", "content": "Hi."}, *range(20)]))]
    assert isinstance(one, ImportedConversation)
    assert len(list(one.messages)) == 1
    assert [which.count for which in one.unreadable] == [1, 1, 1, 17]
    assert "17 more that cannot be read" in one.unreadable[-1].words


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_first_line_of_any_length(tmp_path: Path, size: int) -> None:
    said = [{"role": "user", "content": "x" * size}, {"role": "assistant", "content": "Hi."}]
    code = [line("a", None, "user", "x" * size), line("b", "a", "assistant", "Hi.")]
    for name, value in (("x.jsonl", said), ("s-1.jsonl", code), ("one.json", {"messages": said}), ("gpt.json", TRIP)):
        found = [
            shown(one) for one in read_file(written(tmp_path / name, value)) if isinstance(one, ImportedConversation)
        ]
        assert [(len(one), one[-1][1]) for one in found] in ([(2, "Hi.")], [(3, "Thanks.")])


@given(packing=st.sampled_from([ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA]), data=st.data())
def test_a_zip_file_that_is_broken(packing: int, data: st.DataObject) -> None:
    """Wherever: what can be read is, and the rest is told."""
    file = io.BytesIO()
    with ZipFile(file, "w", packing) as to:
        to.writestr("conversations.json", json.dumps([TRIP] * 3))
    broken = bytearray(file.getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(4, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidTranscript):
        for one in read_opened(io.BytesIO(broken), Path("x")):
            assert one


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitherto.importers.items.LARGEST", 1_000)
    long, short = {"role": "user", "content": "x" * 5_000}, {"role": "user", "content": "Hi."}
    file = written(tmp_path / "x.jsonl", [short, long, short])
    (told,) = unreadable(file)
    assert "line 2: it is longer than 1,000 bytes" in told
    assert [len(list(one.messages)) for one in read_file(file) if isinstance(one, ImportedConversation)] == [2]


def test_a_transcript_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitherto.importers.claude_code._LARGEST", 100)
    assert "its conversation is larger than 100 characters" in unreadable(written(tmp_path / "x.jsonl", WORK))[0]


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
