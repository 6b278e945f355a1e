"""The process's three streams: what is printed where, in which characters, and what a reader may do to it."""

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
from functools import cache
from io import TextIOWrapper
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What could move the cursor, colour, hide or reorder what a terminal shows; a line's end and a tab may stay."""

_PLAINER = {"─": "-", "█": "#", "░": ".", "–": "-", "…": "~", "—": "-", "’": "'", "·": "."}
_LONGEST = 2_000


class _Out(Console):
    """Standard output. A reader that has seen enough and closes it, as `head` does, is no failure."""

    def on_broken_pipe(self) -> NoReturn:
        _discard()
        raise SystemExit(0)


@cache
def out() -> Console:
    """For people, on standard output. Nothing but `Text` has a style: no text is ever read as markup."""
    return _Out(markup=False, highlight=False, emoji=False)


@cache
def err() -> Console:
    """For people, on standard error: progress, warnings and errors, so that standard output stays clean."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def prepare() -> None:
    """Make the streams take any text, whatever their encoding, and warnings come out as lines of ours."""
    codecs.register_error("plainer", _plainer)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started the process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it stays open as long as the process lives)
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="plainer")
    logging.getLogger().addHandler(_Warnings())


def plain(text: str) -> str:
    """Text from anywhere as it may be shown: what could control a terminal is a U+FFFD."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on one line, blanks joined, and no longer than any terminal is wide."""
    return " ".join(plain(text[:_LONGEST]).split())


def print_json(value: Any) -> None:
    """One JSON object on standard output, in ASCII."""
    try:
        sys.stdout.write(json.dumps(value, ensure_ascii=True) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()


def warn(message: str) -> None:
    """One line on standard error."""
    err().print(Text(f"hitherto: warning: {' '.join(plain(message).split())}", style="yellow"), soft_wrap=True)


def fail(message: str, code: int) -> NoReturn:
    """One line on standard error, and the end with `code`; the traceback before it if HITHERTO_TRACEBACK is set."""
    if os.environ.get("HITHERTO_TRACEBACK"):
        traceback.print_exc()
    err().print(f"hitherto: {' '.join(plain(message).split())}", soft_wrap=True)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    _discard()
    sys.exit(code)


class _Warnings(logging.Handler):
    """Warnings as they come, but of each kind only the first: a model that is down would repeat itself every round.

    Only Hitherto's own: what other libraries warn of reaches the user as an error of ours, or need not."""

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
    """What stands for characters that an encoding lacks; one for one, so that tables stay straight."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAINER.get(character, "?") for character in error.object[error.start : error.end]), error.end


def _discard() -> None:
    """Let standard output go nowhere, so that what is left in its buffer cannot fail once more at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
