"""Standard output and standard error: results, JSON, warnings, errors and progress."""

from __future__ import annotations

import codecs
import contextlib
import json
import logging
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that could move the cursor, or color, hide or reorder text in a terminal. Line ends and tabs are left."""

_PLAINER = {"─": "-", "█": "#", "░": ".", "–": "-", "…": "~", "—": "-", "’": "'", "·": "."}
_LONGEST = 2_000


@cache
def out() -> Console:
    """Standard output, for people. Only a `Text` has a style: no text is ever read as markup."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> NoReturn:
            """A reader that has seen enough and closes the pipe, as `head` does, is not a failure."""
            _discard()
            raise SystemExit(0)

    return Output(markup=False, highlight=False, emoji=False)


@cache
def err() -> Console:
    """Standard error, for people: progress, warnings and errors."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def progress() -> Progress:
    """A progress bar on standard error, where that is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), TaskProgressColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=err(), transient=True, disable=not err().is_terminal)


def prepare() -> None:
    """Make the streams take any text, whatever their encoding, and show our log's warnings as lines."""
    codecs.register_error("plainer", _plainer)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the parent process closed it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it stays open as long as the process lives)
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="plainer")
    logging.getLogger().addHandler(_Warnings())


def plain(text: str) -> str:
    """Text that is safe to show: what could control a terminal becomes U+FFFD."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """As `plain`, on one line, cut after 2,000 characters."""
    return " ".join(plain(text[:_LONGEST]).split())


def say(text: str) -> None:
    """One paragraph on standard output."""
    show(one_line(text))


def show(*parts: RenderableType) -> None:
    """Tables and texts on standard output, one below the other."""
    for part in parts:
        out().print(part)


def fields_of(value: Any, *without: str) -> dict[str, Any]:
    """The fields of a dataclass, for `print_json`, but those named: a new field is printed without more."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.name not in without}


def told(counts: Mapping[str, int]) -> str:
    """How many of what, such as "2 messages, 1 document"."""
    return ", ".join(f"{count:,} {name.removesuffix('s') if count == 1 else name}" for name, count in counts.items())


def print_json(value: Any) -> None:
    """One JSON object on standard output, in ASCII; times in ISO format."""
    try:
        sys.stdout.write(json.dumps(value, ensure_ascii=True, default=_text_of) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()


def _text_of(value: Any) -> str:
    return str(value) if isinstance(value, UUID) else datetime.isoformat(value)


def warn(message: str) -> None:
    """One line on standard error."""
    from rich.text import Text

    err().print(Text(f"hitherto: warning: {' '.join(plain(message).split())}", style="yellow"), soft_wrap=True)


def fail(message: str, code: int) -> NoReturn:
    """Print one line on standard error and exit with `code`; with HITHERTO_TRACEBACK set, the traceback first."""
    if os.environ.get("HITHERTO_TRACEBACK"):
        traceback.print_exc()
    err().print(f"hitherto: {' '.join(plain(message).split())}", soft_wrap=True)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    _discard()
    sys.exit(code)


class _Warnings(logging.Handler):
    """Shows the first of each kind of Hitherto's own warnings: a model that is down would cause one every round.

    Warnings of other libraries are left out: those that matter reach the user as errors of ours."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._seen: Counter[str] = Counter()
        self.addFilter(logging.Filter("hitherto"))

    def emit(self, record: logging.LogRecord) -> None:
        kind = str(record.msg)
        self._seen[kind] += 1
        if self._seen[kind] == 1:
            warn(record.getMessage())
        elif self._seen[kind] == 2:
            warn("the same came again; it will not be shown each time")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """A replacement for each character that the encoding lacks, one for one, so that tables stay aligned."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAINER.get(character, "?") for character in error.object[error.start : error.end]), error.end


def _discard() -> None:
    """Send standard output nowhere, so that what is left in its buffer cannot fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
