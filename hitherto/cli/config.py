"""`hitherto config`: the settings that are in force, and where each comes from."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

import typer
from pydantic import SecretStr

from hitherto.addresses import shown_address
from hitherto.cli import options
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, Column, fitted
from hitherto.other_systems.settings_aliases import ignored_variables
from hitherto.settings import ADDRESSES, Settings
from hitherto.wiring import IN_MEMORY

_DEFAULT = "default"
_HIDDEN = "***"


def config(
    changed: Annotated[bool, typer.Option("--changed", help="Show only what does not have its default.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the settings that are in force, and where each comes from.

    A command's own options come first, then the environment, then the file that --config or HITHERTO_CONFIG names, or
    hitherto.toml in this folder. Keys and passwords are not shown.
    """
    settings, places = Settings.load_with_places()
    values = {name: _shown(name, value) for name, value in settings.model_dump(mode="python").items()}
    for variable, advice in ignored_variables():
        output.warn(f"{variable} is no setting, and is ignored; {advice}")
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


def _shown(name: str, value: Any) -> Any:
    """A setting's value for JSON, with nothing secret in it."""
    if isinstance(value, SecretStr):
        return _HIDDEN
    if isinstance(value, tuple):
        return list(cast("tuple[object, ...]", value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if name in ADDRESSES and value != IN_MEMORY:
        return shown_address(str(value))
    return str(value)


def _text(value: Any) -> str:
    if value is None:
        return NONE
    return output.one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
