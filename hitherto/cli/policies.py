"""Policies as a command line writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hitherto.core.policy import presets
from hitherto.core.policy.policy import Policy
from hitherto.errors import InvalidPolicy
from hitherto.simulation.run import redact_summarize, redact_trim

COMPOSED = {"redact_summarize": redact_summarize, "redact_trim": redact_trim}
"""Policies of several stages."""

_FILE = ".json"
_NEXT_POLICY = re.compile(r",(?!\s*[\w.-]+\s*=)")
"""A comma that no parameter follows: parameters have an "=", the names of policies have none."""


def parse_policies(lists: Iterable[str]) -> dict[str, Policy]:
    """The policies that `lists` name, by name, in order.

    A list is `none,trim:max_turns=12,keep_turns=4,mine.json`: presets, with or without parameters, and files with a
    policy's JSON, named as the policy in them is. Raises InvalidPolicy, also for the same name twice.
    """
    policies: dict[str, Policy] = {}
    for text in (text for given in lists for text in _split(given)):
        name, policy = parse_policy(text)
        if name in policies:
            raise InvalidPolicy(f"the policy {name!r} is there twice; leave one out, or give it a name of its own")
        policies[name] = policy
    return policies


def parse_policy(text: str) -> tuple[str, Policy]:
    """The name and the policy that `text` stands for: a preset, one of `COMPOSED`, or a .json file.

    Raises InvalidPolicy.
    """
    if not text.endswith(_FILE):
        composed = COMPOSED.get(text)
        return text, presets.parse(text) if composed is None else composed()
    try:
        policy = Policy.from_json(json.loads(Path(text).read_bytes()))
    except OSError as error:
        raise InvalidPolicy(f"cannot read the policy {text}: {error.strerror}") from error
    except InvalidPolicy as error:
        raise InvalidPolicy(f"{text}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidPolicy(f"{text} is not JSON: {error}") from error
    return policy.name, policy


def _split(given: str) -> Iterator[str]:
    if given.endswith(_FILE) and Path(given).exists():  # whatever commas its name has
        yield given
        return
    for text in _NEXT_POLICY.split(given):
        if not text.strip():
            raise InvalidPolicy(f"the list of policies {given!r} has an empty place; write it like none,trim")
        yield text.strip()
