"""The recording: hashes of all output, and the text of some."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import unified_diff
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from tests.recorded.run import POLICIES

FOLDER = Path(__file__).parent / "recordings"
"""A file for each policy."""

IN_FULL = frozenset(
    {
        "agent/redact/end/digests",
        "two/chunks/facts",
        "two/token_threshold_archive/end/openai.chat/small/incoming_recall",
    }
)
"""The pieces that are recorded as text too: a context, digests and facts, for people to read."""

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


def marks_of(pieces: Pieces) -> Marks:
    """What is recorded of all pieces: a hash of each. The contexts of a checkpoint in one wire format have one mark: a
    hash of their requests, one of their manifests, and the tokens of each context."""
    contexts = {name: piece for name, piece in pieces.items() if name.count("/") == 3}
    marks = {name: _hash_of(piece) for name, piece in pieces.items() if name not in contexts}
    for point, names in groupby(sorted(contexts), key=lambda name: name.rsplit("/", 2)[0]):
        asked = [contexts[name] for name in names]
        hashes = [_hash_of([one.get(part, one) for one in asked]) for part in ("request", "manifest")]
        tokens = [str(one["manifest"]["total"]) if "manifest" in one else "none" for one in asked]
        marks[point] = " ".join([*hashes, ",".join(tokens)])
    return marks


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
            "hashes": {case: marks_of(pieces) for case, pieces in ours.items()},
            "in full": {name: piece for name, piece in texts.items() if name in IN_FULL},
        }
        (FOLDER / f"{policy}.json").write_text(text_of(recording))


def differences(case: str, pieces: Pieces) -> Iterator[str]:
    """A line for each mark that is not as recorded, and a diff where a text was recorded."""
    recording = json.loads(file_of(case).read_text())
    before: Marks = recording["hashes"].get(case, {})
    now = marks_of(pieces)
    for name in sorted({*before, *now}):
        if (was := before.get(name, "not there").split()) != (found := now.get(name, "not there").split()):
            yield f"{case}/{name}: {_told(was, found)}"
    for name, text in recording["in full"].items():
        if name.startswith(f"{case}/"):
            old, new = text_of(text), text_of(pieces.get(name.removeprefix(f"{case}/")))
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
