"""The recording: a hash of every piece of output, and the text of some."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import unified_diff
from enum import Enum
from pathlib import Path
from typing import Any, cast

from tests.recorded.run import POLICIES

FOLDER = Path(__file__).parent / "recordings"
"""A file for each policy."""

IN_FULL = frozenset(
    {
        "agent/redact/end/digests",
        "agent/redact/end/openai.chat/small/no_incoming",
        "agent/redact_calls/end/anthropic/small/no_incoming",
        "agent/native/end/digests",
        "agent/native/end/openai.responses/small/no_incoming",
        "mixed/rolling/end/openai.chat/small/incoming",
        "mixed/rolling/steps",
        "mixed/token_threshold/second/digests",
        "mixed/token_threshold/second/openai.responses/small/incoming_recall",
        "plain/balanced/end/openai.chat/small/incoming",
        "plain/none/end/openai.chat/small/incoming",
        "plain/trim/end/anthropic/small/incoming",
        "two/chunks/end/openai.chat/small/incoming_recall",
        "two/chunks/facts",
        "two/sliding_window/second/anthropic/small/incoming_recall",
        "two/summarize/end/openai.responses/small/incoming_recall",
        "two/token_threshold_archive/documents",
        "two/token_threshold_archive/end/openai.chat/small/incoming_recall",
    }
)
"""The pieces that are recorded as text too: each kind of piece, each policy and each format at least once."""

Pieces = dict[str, Any]
Marks = dict[str, str]


def text_of(value: object) -> str:
    """Canonical JSON: keys sorted, in ASCII, a line for each value."""
    return json.dumps(value, sort_keys=True, indent=1, default=_plain) + "\n"


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case Enum():
            return value.value
        case Mapping():
            return dict(cast("Mapping[str, object]", value))
        case _:
            raise TypeError(f"{value!r} is no JSON")


def mark_of(piece: Any) -> str:
    """What is recorded of every piece: its hash; of a context, the hashes of request and manifest, and its tokens."""
    if isinstance(piece, dict) and "manifest" in piece:
        return f"{_hash_of(piece['request'])} {_hash_of(piece['manifest'])} {piece['manifest']['total']}"
    return _hash_of(piece)


def _hash_of(value: object) -> str:
    """The first 64 bits of a SHA-256, of the JSON on one line: Python writes that much faster."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=_plain).encode()).hexdigest()[:16]


def file_of(case: str) -> Path:
    return FOLDER / f"{case.partition('/')[2]}.json"


def write(output: Mapping[str, Pieces]) -> None:
    """Record all cases anew."""
    FOLDER.mkdir(exist_ok=True)
    for policy in POLICIES:
        ours = {case: pieces for case, pieces in output.items() if file_of(case).stem == policy}
        texts = {f"{case}/{name}": piece for case, pieces in ours.items() for name, piece in pieces.items()}
        recording = {
            "hashes": {case: {name: mark_of(piece) for name, piece in pieces.items()} for case, pieces in ours.items()},
            "in full": {name: piece for name, piece in texts.items() if name in IN_FULL},
        }
        (FOLDER / f"{policy}.json").write_text(text_of(recording))


def differences(case: str, pieces: Pieces) -> Iterator[str]:
    """A line for each piece that is not as recorded, and a diff where its text was recorded."""
    recording = json.loads(file_of(case).read_text())
    before: Marks = recording["hashes"].get(case, {})
    now = {name: mark_of(piece) for name, piece in pieces.items()}
    for name in sorted({*before, *now}):
        if (was := before.get(name, "not there").split()) != (found := now.get(name, "not there").split()):
            yield f"{case}/{name}: {_told(was, found)}"
        text = recording["in full"].get(f"{case}/{name}")
        if text is not None and (new := text_of(pieces.get(name))) != (old := text_of(text)):
            yield from unified_diff(old.splitlines(), new.splitlines(), "recorded", "now", lineterm="", n=1)


def _told(was: list[str], found: list[str]) -> str:
    if len(was) != 3 or len(found) != 3:
        return "changed" if len(was) == len(found) == 1 else f"was {' '.join(was)}, is {' '.join(found)}"
    parts = [name for at, name in enumerate(("request", "manifest")) if was[at] != found[at]]
    return f"{' and '.join(parts)} changed ({was[2]} tokens then, {found[2]} now)"


def write_full(folder: Path, case: str, pieces: Pieces) -> None:
    """Write each piece as text to a file of its own, for `diff -r`."""
    for name, piece in pieces.items():
        file = folder / case / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(piece))


def recorded() -> set[str]:
    """The cases that are recorded."""
    return {case for file in FOLDER.glob("*.json") for case in json.loads(file.read_text())["hashes"]}
