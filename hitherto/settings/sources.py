"""Where settings come from: what a call gives, the environment, and a file, in this order; then the default."""

from __future__ import annotations

import difflib
import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hitherto.addresses import borrows_a_password
from hitherto.errors import InvalidSettings

FILE = "hitherto.toml"
"""The file that is read from the working folder where no other is named."""

CONFIG = "HITHERTO_CONFIG"
"""The variable that names another one."""

NAMED_FILE, FOUND_FILE = 2, 3
"""The levels of values in a file that was named, and in one that was only found in the working folder."""

_LARGEST = 1_000_000
_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A value as it stands at its source. `level` is 0 for what a call gives, 1 for the environment, 2 for a file that
    was named, 3 for one that was found; `where` names the place in words."""

    value: object
    level: int
    where: str


def given_values(given: Mapping[str, object]) -> dict[str, SettingValue]:
    """What a call gives, but for None."""
    return {name: SettingValue(value, 0, "given") for name, value in given.items() if value is not None}


def environment_values(variables: Mapping[str, str]) -> dict[str, SettingValue]:
    """The values of the variables of the environment that `variables` gives for each name. An empty variable is none
    at all."""
    there = {name.upper(): text for name, text in os.environ.items()}
    found = {name: there.get(variable, "") for name, variable in variables.items()}
    return {name: SettingValue(text, 1, variables[name]) for name, text in found.items() if text}


def file_values(config: Path | str | None, known: Iterable[str]) -> dict[str, SettingValue]:
    """What the file of settings says: the one at `config`, or that HITHERTO_CONFIG names, or hitherto.toml in the
    working folder if there is one. The names in a table are written `table.name`.

    Raises InvalidSettings for a file that cannot be read, names that are not among the `known` ones, and a
    hitherto.toml that somebody else could have put there.
    """
    named = config or os.environ.get(CONFIG)
    path = Path(named).expanduser() if named else Path(FILE)
    if not named and not os.path.lexists(path):
        return {}
    written = _parsed(path, _content(path, trusted=bool(named)))
    known = set(known)
    values: dict[str, object] = {}
    for name, value in written.items():
        table = cast("Mapping[object, object]", value) if isinstance(value, Mapping) and name not in known else None
        values |= {name: value} if table is None else {f"{name}.{key}": one for key, one in table.items()}
    for name in values:
        if name not in known:
            raise InvalidSettings(f"{path}: {name!r} is not a setting; {nearest(name, known)}")
    level = NAMED_FILE if named else FOUND_FILE
    return {name: SettingValue(value, level, f"{path}: {name}") for name, value in values.items() if value is not None}


_ADDRESSES_OF = {
    "model_key": ("model_base_url", "model_provider"),
    "compact_key": ("compact_base_url",),
    "embedder_key": ("embedder_base_url", "embedder_provider"),
    "reranker_key": ("reranker_base_url",),
}
"""For each key, the settings that say where it goes: an address, or else the provider, which has its own."""


def check_keys(values: Mapping[str, SettingValue], defaults: Mapping[str, object]) -> None:
    """Raises InvalidSettings where a file that was only found says where a key or a password goes that is not from that
    file, whose memory commands are about, which files of an embedder are loaded, where the server's own files are, or
    which web pages may read the memory: such a file may have come with a folder that was downloaded."""
    for key, addresses in _ADDRESSES_OF.items():
        if key not in values or values[key].level == FOUND_FILE:
            continue
        decides = next((name for name in addresses if name in values), None)
        if decides is not None and values[decides].level == FOUND_FILE and values[decides].value != defaults[decides]:
            raise _refused(decides, values[decides], f"its key comes from elsewhere ({values[key].where})")
    for name, why in _NOT_FOUND.items():
        if name in values and values[name].level == FOUND_FILE:
            raise _refused(name, values[name], why)
    provider = values.get("embedder_provider")
    if provider is not None and provider.value == "sentence_transformers":
        # A name may be a folder beside the file, and sentence-transformers runs code that it finds in a folder.
        for name in ("embedder_provider", "embedder", "previous_embedder"):
            if name in values and values[name].level == FOUND_FILE:
                raise _refused(name, values[name], "a model for sentence_transformers can have code in it")
    database = values.get("database")
    if database is not None and database.level == FOUND_FILE and borrows_a_password(str(database.value)):
        raise _refused(
            "database",
            database,
            "a password or a ticket for it may come from elsewhere (PGPASSWORD, .pgpass or others that libpq reads)",
        )


_NOT_FOUND = {
    "data_dir": "the files of a server there can have commands in them",
    "cors_origins": "web pages could read the memory",
    # With the user's own key, a command would show, change or erase what is another's, and tell another what it stores.
    "tenant": "commands would read and write another's memory",
    "user": "commands would read and write another's memory",
}
"""Settings that a found file must not have, and why."""


def _refused(name: str, value: SettingValue, why: str) -> InvalidSettings:
    return InvalidSettings(
        f"{value.where} in this folder is refused, as {why}, and a file that was only found may have come with the "
        f"folder. If it is yours, name it with --config or {CONFIG}, or set HITHERTO_{name.upper()} to what it says"
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Which of the known names may be meant, or which there are."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"


def _content(path: Path, *, trusted: bool) -> bytes:
    try:
        with open(path, "rb", opener=_nonblocking) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise InvalidSettings(f"{path} is no file; name one with --config or {CONFIG}")
            if not trusted and (about.st_uid not in (0, os.geteuid()) or about.st_mode & stat.S_IWOTH):
                raise InvalidSettings(
                    f"{path} in this folder belongs to another user, or others may write to it, so it is not read; "
                    f"to read it, name it with --config or {CONFIG}"
                )
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidSettings(f"the settings in {path} cannot be read: {error.strerror or error}") from error
    if len(content) > _LARGEST:
        raise InvalidSettings(f"{path} has more than {_LARGEST:,} bytes; that is no file of settings")
    return content


def _nonblocking(path: str, flags: int) -> int:
    """A pipe must not hold up whoever reads the settings."""
    return os.open(path, flags | os.O_NONBLOCK)


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    try:
        text = content.decode("utf-8-sig")
        found = _yaml(path, text) if path.suffix in _YAML else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in cast("dict[object, Any]", found)):
        raise InvalidSettings(f"{path} has no settings by their names in it")
    return cast("dict[str, Any]", found)


def _yaml(path: Path, text: str) -> object:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise InvalidSettings(
            f"{path} is YAML, which needs PyYAML (pip install hitherto[yaml]); or write {FILE} in its place"
        ) from error
    try:
        return yaml.safe_load(text) or {}
    except yaml.MarkedYAMLError as error:  # its text quotes the file, which may hold keys
        line = "" if error.problem_mark is None else f" (at line {error.problem_mark.line + 1})"
        raise ValueError(f"{error.problem}{line}") from None
    except yaml.YAMLError as error:
        raise ValueError(type(error).__name__) from None
