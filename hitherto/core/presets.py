"""The policies that have a name of their own, and their form on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from hitherto.core.policy import Policy, Prefix, Seq, Stage, Summarise, Window
from hitherto.errors import InvalidPolicy


def none() -> Policy:
    """Everything stays verbatim; only the budget cuts."""
    return Policy("none")


def sliding_window(window: int = 14, after_seq: int = 5, limit: int = 1_000) -> Policy:
    """A digest of the newest `window` messages, renewed at the end of every round from seq `after_seq` on.

    What is older than the window leaves the digest. `limit` bounds the digest's text in tokens. The parameters are
    seed 000's `memory_rolling_window_size` and `memory_summarize_after_seq`.
    """
    stage = Stage(trigger=Seq(after_seq), keep=Window(window), action=Summarise(limit), render=Prefix())
    return Policy("sliding_window", (stage,))


PRESETS: dict[str, Callable[..., Policy]] = {"none": none, "sliding_window": sliding_window}


def policy_of(value: object) -> Policy | None:
    """A policy as it is, one from its command-line form, or None. Raises InvalidPolicy for anything else."""
    if value is None or isinstance(value, Policy):
        return value
    if isinstance(value, str):
        return parse(value)
    raise InvalidPolicy(f"policy is {value!r}; give a policy such as sliding_window(), or its name")


def parse(text: str) -> Policy:
    """A policy from `name` or `name:parameter=value,…`, e.g. `sliding-window:window=20,after_seq=7`.

    Dashes and underscores in names mean the same. Raises InvalidPolicy for an unknown name or parameter.
    """
    name, _, rest = text.strip().partition(":")
    preset = PRESETS.get(name.strip().replace("-", "_"))
    if preset is None:
        known = ", ".join(key.replace("_", "-") for key in PRESETS)
        raise InvalidPolicy(f"there is no policy named {name!r}; known: {known}")
    parameters = list(inspect.signature(preset).parameters)
    arguments: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = pair.partition("=")
        if not equals or not value.strip().isdecimal():
            raise InvalidPolicy(f"{pair!r} in policy {text!r} is not parameter=number")
        parameter = key.strip().replace("-", "_")
        if parameter not in parameters:
            known = ", ".join(parameters) or "none"
            raise InvalidPolicy(f"policy {name.strip()!r} has no parameter {key.strip()!r}; it has: {known}")
        arguments[parameter] = int(value)
    return preset(**arguments)
