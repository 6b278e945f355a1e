"""Text files to be added as documents, read and checked as a whole."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from hitherto.core.documents.checks import MOST_CHARACTERS, checked_text
from hitherto.errors import InvalidDocument

_STDIN = "-"
_STDIN_LABEL = "standard input"

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")
_KINDS = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a Word file or an archive",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
}


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text. `name` is None for standard input, `markdown` is None if the name does not tell."""

    name: str | None
    text: str
    markdown: bool | None

    @property
    def label(self) -> str:
        return self.name or _STDIN_LABEL


def read_text(path: str) -> TextFile:
    """The text of the file at `path`, of standard input for "-". Raises InvalidDocument, which names the path."""
    try:
        data = sys.stdin.buffer.read() if path == _STDIN else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidDocument(f"cannot read {path}: {why}") from error
    try:
        text = checked_text(_decoded(data))
    except InvalidDocument as error:
        raise InvalidDocument(f"{_STDIN_LABEL if path == _STDIN else path}: {error}") from error
    suffix = Path(path).suffix.lower()
    name = None if path == _STDIN else Path(path).name
    return TextFile(name, text, True if suffix in _MARKDOWN else False if suffix == ".txt" else None)


def _decoded(data: bytes) -> str:
    if len(data) > 4 * MOST_CHARACTERS:
        raise InvalidDocument(
            f"it has {len(data):,} bytes; at most {MOST_CHARACTERS:,} characters are kept, so split it"
        )
    if not data.strip():
        raise InvalidDocument("it is empty; give a file with text in it")
    if data.startswith(_UTF16_MARKS):
        raise InvalidDocument("it is written in UTF-16; save it in UTF-8")
    for mark, kind in _KINDS.items():
        if data.startswith(mark):
            raise InvalidDocument(f"it is {kind}, not text; extract its text first")
    if (at := data.find(b"\0")) >= 0:
        raise InvalidDocument(f"it is a binary file (a NUL at byte {at + 1}), not text; extract its text first")
    try:
        return data.removeprefix(_UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"it is not UTF-8 ({error.reason}, at byte {error.start + 1}); save it in UTF-8, or extract its text if it "
            "is a binary file"
        ) from error
