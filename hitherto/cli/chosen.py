"""Which policies a command line names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hitherto.core import presets
from hitherto.core.policy import Policy
from hitherto.errors import InvalidPolicy
from hitherto.simulation.composed import redact_summarise, redact_trim

_FILE = ".json"
_COMPOSED = {"redact-summarise": redact_summarise, "redact-trim": redact_trim}
_NEXT_POLICY = re.compile(r",(?!\s*[\w.-]+\s*=)")
"""A comma that no parameter follows: policies have no "=" in their names, parameters always have one."""


def known_policies() -> str:
    """The presets as a command line names them."""
    return ", ".join(name.replace("_", "-") for name in presets.PRESETS)


def chosen(lists: Iterable[str]) -> dict[str, Policy]:
    """The policies that `lists` name, under the names they are given by, in order.

    A list is `none,trim:max_turns=12,keep_turns=4,mine.json`: presets, with parameters or without, and files with a
    policy's JSON, which go by the name that stands in them. Raises InvalidPolicy, also for the same name twice.
    """
    found: dict[str, Policy] = {}
    for text in (one for given in lists for one in _split(given)):
        name, policy = named(text)
        if name in found:
            raise InvalidPolicy(f"the policy {name!r} is there twice; leave one out, or give it a name of its own")
        found[name] = policy
    return found


def named(text: str) -> tuple[str, Policy]:
    """The policy that `text` names, a preset, one of the simulation's composed ones or a .json file, and what it goes
    by. Raises InvalidPolicy."""
    if not text.endswith(_FILE):
        composed = _COMPOSED.get(text.replace("_", "-"))
        return text, presets.parse(text) if composed is None else composed()
    try:
        policy = Policy.from_json(json.loads(Path(text).read_bytes()))
    except OSError as error:
        raise InvalidPolicy(f"cannot read the policy {text}: {error.strerror}") from error
    except InvalidPolicy as error:
        raise InvalidPolicy(f"{text}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidPolicy(f"{text} is no JSON: {error}") from error
    return policy.name, policy


def _split(given: str) -> Iterator[str]:
    if given.endswith(_FILE) and Path(given).exists():  # whatever commas its name has
        yield given
        return
    for text in _NEXT_POLICY.split(given):
        if not text.strip():
            raise InvalidPolicy(f"the list of policies {given!r} has an empty place; write it like none,trim")
        yield text.strip()
