"""Structured logging through the standard library's loggers.

Nothing here depends on how the application has set up logging. As long as it has not, nothing is printed.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO, cast

ROOT = "hitherto"
"""All of Hitherto's loggers are below this one."""

logging.getLogger(ROOT).addHandler(logging.NullHandler())  # else Python prints warnings where logging is not set up

_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_DUPLICATES = _ATTRIBUTES - {"exc_info", "stack_info"}
"""Names of attributes that every log record has, without those that are options of a logging call."""

_FRAMES = 3
"""The stack level of the line that logs, seen from `logging`: above `Logger._say` and `Logger.info`."""


class Logger:
    """A logger of lines for people, with fields for programs.

    `log.info("%d messages", n, conversation=id)`: the line is the record's message, and each field an attribute of the
    record, so that any handler and formatter works. A field named like an attribute that every record has gets a "_"
    behind its name. `exc_info=True` adds the current exception without its message: that of a foreign exception may
    quote the conversation. A line below the logger's level costs next to nothing. `bind` gives a logger that adds the
    bound fields to all its lines.
    """

    def __init__(self, name: str, fields: Mapping[str, object] | None = None) -> None:
        self._logger = logging.getLogger(name)
        self._fields = fields or {}

    def bind(self, /, **fields: object) -> Logger:
        return Logger(self._logger.name, {**self._fields, **fields})

    def debug(self, event: str, /, *args: object, **fields: object) -> None:
        self._say(logging.DEBUG, event, args, fields)

    def info(self, event: str, /, *args: object, **fields: object) -> None:
        self._say(logging.INFO, event, args, fields)

    def warning(self, event: str, /, *args: object, **fields: object) -> None:
        self._say(logging.WARNING, event, args, fields)

    def error(self, event: str, /, *args: object, **fields: object) -> None:
        self._say(logging.ERROR, event, args, fields)

    def exception(self, event: str, /, *args: object, **fields: object) -> None:
        """An error, with the current exception: its type, its traceback and its causes, but no message."""
        self._say(logging.ERROR, event, args, {"exc_info": True, **fields})

    def _say(self, level: int, event: str, args: tuple[object, ...], fields: Mapping[str, object]) -> None:
        if not self._logger.isEnabledFor(level):
            return
        if (error := _at_hand(fields.get("exc_info"))) is not None:
            fields = {**fields, "exc_info": (type(error), _without_messages(error, _CHAIN), error.__traceback__)}
        own = {name + "_" if name in _DUPLICATES else name: value for name, value in {**self._fields, **fields}.items()}
        options = {name: own.pop(name) for name in ("exc_info", "stack_info") if name in own}
        self._logger.log(level, event, *args, stacklevel=_FRAMES, extra=own, **cast("dict[str, Any]", options))


_CHAIN = 20
"""The most exceptions of a chain that are shown."""


def _at_hand(given: object) -> BaseException | None:
    """The exception that `exc_info` asks for."""
    match given:
        case BaseException():
            return given
        case True:
            return sys.exc_info()[1]
        case _:
            return None


def _without_messages(error: BaseException | None, left: int) -> BaseException | None:
    """A copy of an exception and those that led to it, with their types and tracebacks but without their messages."""
    if error is None or left == 0:
        return None
    kind = type(error)
    shown = type(kind.__name__, (Exception,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})()
    shown.__traceback__ = error.__traceback__
    shown.__cause__ = _without_messages(error.__cause__, left - 1)
    shown.__context__ = _without_messages(error.__context__, left - 1) if error.__cause__ is None else None
    shown.__suppress_context__ = error.__suppress_context__
    return shown


def logger(name: str) -> Logger:
    """The logger of that name."""
    return Logger(name)


def json_lines(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Set this process up to log one JSON object a line on `stream` (by default standard error), in ASCII.

    Each has `time` (ISO 8601, UTC), `level`, `logger` and `event`, then the fields of the event and, if there was one,
    `exception` with its traceback; a field named like one of these gets a "_" behind its name. It logs Hitherto's
    events from `level` on, other libraries' from WARNING on. All other handlers of the root logger are removed: this is
    for Hitherto's own processes.
    """
    _take_over(_Json(), stream, level)


def plain_lines(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """The same for people: time, level, event, and the traceback of an exception on lines of its own."""
    _take_over(_Plain("%(asctime)s %(levelname)-7s %(message)s"), stream, level)


class _Plain(logging.Formatter):
    """Keeps an event on one line by replacing control characters: names come from outside and may hold anything."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _time(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _CONTROLS.sub("\ufffd", super().formatMessage(record))


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _take_over(formatter: logging.Formatter, stream: TextIO | None, level: int) -> None:
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(ROOT).setLevel(level)


class _Json(logging.Formatter):
    """The fields that every line has stand in front; fields of the event with the same names are renamed."""

    def format(self, record: logging.LogRecord) -> str:
        first = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields = {name: value for name, value in vars(record).items() if name not in _ATTRIBUTES}
        if record.exc_info and record.exc_info[1] is not None:
            fields["exception"] = self.formatException(record.exc_info)
        return _dumped({**first, **{name + "_" if name in first else name: value for name, value in fields.items()}})


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _dumped(value: Mapping[str, object]) -> str:
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # NaN or infinity, a circular reference, keys that are not text
        return json.dumps({str(name): str(one) for name, one in value.items()})
