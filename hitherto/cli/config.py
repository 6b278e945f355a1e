"""`hitherto config`: the settings that are in force, and where each comes from."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, cast

import typer
from pydantic import SecretStr

from hitherto.cli import options
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, Column, fitted
from hitherto.settings import Settings

_DEFAULT = "default"
_HIDDEN = "***"
_SECRET = (
    (re.compile(r"(?<=://)[^/?#]*:.*@"), f"{_HIDDEN}@"),
    (re.compile(r"(?<=http://)[^/?#]*@|(?<=https://)[^/?#]*@"), f"{_HIDDEN}@"),
    (re.compile(r"(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)"), rf"\1{_HIDDEN}"),
    (re.compile(r"^(https?://[^?#]*)[?#].+"), rf"\1?{_HIDDEN}"),
)
"""What may be secret in an address: a user with a password, or in a query."""


def config(
    changed: Annotated[bool, typer.Option("--changed", help="Show only what does not have its default.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the settings that are in force, and where each comes from.

    A command's own options come first, then the environment, then the file that --config or HITHERTO_CONFIG names, or
    hitherto.toml in this folder. Keys and passwords are not shown.
    """
    settings, places = Settings.load_with_places()
    values = {name: shown(value) for name, value in settings.model_dump(mode="python").items()}
    listed = sorted(values if not changed else places)
    if as_json:
        output.print_json({name: {"value": values[name], "from": places.get(name, _DEFAULT)} for name in listed})
        return
    if not listed:
        output.say("Every setting has its default.")
        return
    columns = [
        Column("setting", listed, key=True),
        Column("value", [_text(values[name]) for name in listed], prose=True),
        Column("from", [output.one_line(places.get(name, _DEFAULT)) for name in listed], key=True, most=40),
    ]
    output.show(fitted(None, columns))


def shown(value: Any) -> Any:
    """A value for JSON, with nothing secret in it."""
    if isinstance(value, SecretStr):
        return _HIDDEN
    if isinstance(value, tuple):
        return list(cast("tuple[object, ...]", value))
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    for pattern, hidden in _SECRET:
        text = pattern.sub(hidden, text)
    return text


def _text(value: Any) -> str:
    if value is None:
        return NONE
    return output.one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
