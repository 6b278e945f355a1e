"""The commands that the loop reads, a JSON object a line each."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hitherto.errors import InvalidInput

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Strategy = Annotated[
    str | dict[str, Any] | None,
    Field(description="A policy's name, form or JSON, or switches: memoryTrimming, memorySummarization, …"),
]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str | int | None = Field(default=None, description="Comes back with each event of the command.")


class RunCommand(_Line):
    """Answer a message."""

    command: Literal["run"]
    session_id: _Name = "default"
    message: Annotated[str, Field(min_length=1)]
    memory_strategy: _Strategy = None
    memory_injection: bool | None = None


class StrategyCommand(_Line):
    """Set what a session's runs show of its memory, as far as it is given, and say what holds now."""

    command: Literal["strategy"]
    session_id: _Name = "default"
    memory_strategy: _Strategy = None
    memory_injection: bool | None = None


class SessionsCommand(_Line):
    """List the sessions, the one in which something was said last first."""

    command: Literal["sessions"]
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    cursor: str | None = None


class HistoryCommand(_Line):
    """The messages of a session's log and its runs; with `run`, the events of this run once more."""

    command: Literal["history"]
    session_id: _Name = "default"
    run: str | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


class ClearCommand(_Line):
    """Begin a session anew; its log keeps everything."""

    command: Literal["clear"]
    session_id: _Name = "default"


class HelpCommand(_Line):
    """The JSON Schemas of commands and events."""

    command: Literal["help"]


Command = RunCommand | StrategyCommand | SessionsCommand | HistoryCommand | ClearCommand | HelpCommand
COMMANDS: dict[str, type[Command]] = {
    "run": RunCommand,
    "strategy": StrategyCommand,
    "sessions": SessionsCommand,
    "history": HistoryCommand,
    "clear": ClearCommand,
    "help": HelpCommand,
}
_COMMAND: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="command")])


def command_of(line: bytes) -> Command:
    """The command in a line. Raises InvalidInput."""
    try:
        value: object = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidInput("the line is not UTF-8; send a JSON object a line") from None
    except (ValueError, RecursionError):
        raise InvalidInput('the line is not JSON; send a JSON object a line, e.g. {"command": "help"}') from None
    try:
        return _COMMAND.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(one) for one in first["loc"] if one not in COMMANDS)
        if first["type"].startswith("union_tag"):
            raise InvalidInput(f"command is none of {', '.join(COMMANDS)}") from None
        raise InvalidInput(f"{where or 'the line'}: {first['msg']}") from None


def asked_id(line: bytes) -> str | int | None:
    """The id of a command that may be unusable otherwise."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None
