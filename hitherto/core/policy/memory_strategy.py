"""How a run's memory is shown, as requests and agents name it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from hitherto.core.policy import presets
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import PolicyLike, one_of, policy_of
from hitherto.errors import InvalidInput, InvalidPolicy

MemoryStrategy = Policy | str | Mapping[str, Any]
"""A policy in any of its forms, or switches: at most one of `memoryTrimming`, `memorySummarization` and
`memoryCompacting` (True, or the parameters of its session class), and `memoryInjection` (whether the newest summary of
another conversation is in the instructions)."""

_IN_SESSION: dict[str, Callable[..., Policy]] = {
    "memoryTrimming": presets.trim,
    "memorySummarization": presets.summarize,
    "memoryCompacting": presets.compact,
}
_INJECTION = "memoryInjection"


def strategy_of(
    given: MemoryStrategy | None, memory_injection: bool | None = None
) -> tuple[Policy | None, bool | None]:
    """The policy, and whether a summary is injected, which `memory_injection` may say too; None where nothing is said
    of it. Raises InvalidPolicy for an unusable policy, InvalidInput for unusable switches and where the two differ."""
    policy, injection = _read(given)
    return policy, one_of(memory_injection=memory_injection, memoryInjection=injection)


def configured(
    policy: PolicyLike | None, memory_strategy: MemoryStrategy | None, memory_injection: bool | None
) -> tuple[Policy | None, bool, bool | None]:
    """What is to be stored: the policy, under either name; whether the stored one goes, for which "" is given; and
    whether a summary is injected. Raises as `strategy_of`."""
    goes = policy == "" or memory_strategy == ""
    read, injection = strategy_of(None if memory_strategy == "" else memory_strategy, memory_injection)
    chosen = one_of(policy=None if policy == "" else policy_of(policy), memory_strategy=read)
    if goes and chosen is not None:
        raise InvalidInput("policy and memory_strategy are names for the same, but one is empty; give one of them")
    return chosen, goes, injection


def _read(given: MemoryStrategy | None) -> tuple[Policy | None, bool | None]:
    if isinstance(given, str) and given in _IN_SESSION:
        return _IN_SESSION[given](), None
    if isinstance(given, Mapping) and not given:
        raise InvalidInput(f"memory_strategy is empty; the switches are {', '.join((*_IN_SESSION, _INJECTION))}")
    if not isinstance(given, Mapping) or not any(str(name).startswith("memory") for name in given):
        return policy_of(given), None
    switches: Mapping[str, Any] = given
    unknown = [name for name in switches if name not in (*_IN_SESSION, _INJECTION)]
    if unknown:
        known = ", ".join((*_IN_SESSION, _INJECTION))
        raise InvalidInput(f"memory_strategy has {unknown[0]!r}; the switches are {known}")
    injection = switches.get(_INJECTION)
    if not isinstance(injection, bool | None):
        raise InvalidInput(f"{_INJECTION} is {injection!r}; give True or False")
    chosen = {name: switches[name] for name in _IN_SESSION if switches.get(name) not in (None, False)}
    if len(chosen) > 1:
        raise InvalidInput(f"memory_strategy has {' and '.join(chosen)}; give at most one of them")
    for name, value in chosen.items():
        if value is not True and not isinstance(value, Mapping):
            raise InvalidInput(f"{name} is {value!r}; give True, False, or an object of its parameters")
        parameters = {} if value is True else dict(cast("Mapping[str, Any]", value))
        try:
            return _IN_SESSION[name](**parameters), injection
        except TypeError as error:
            raise InvalidPolicy(f"{name} does not take these parameters: {error}") from None
    off = any(switches.get(name) is False for name in _IN_SESSION)
    return (presets.none() if off else None), injection
