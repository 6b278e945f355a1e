"""How a run's memory is shown, as requests and agents name it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, cast

from hitherto import CrossSession, Policy, none, policy_of
from hitherto.errors import InvalidInput, InvalidPolicy
from hitherto.other_systems.session_strategies.policies import compacting, summarizing, trimming

MemoryStrategy = Policy | str | Mapping[str, Any]
"""A policy in any of its forms, or switches: at most one of `memoryTrimming`, `memorySummarization` and
`memoryCompacting` (True, or the parameters of its session class), and `memoryInjection` (whether the newest summary of
another conversation is in the instructions)."""

_IN_SESSION: dict[str, Callable[..., Policy]] = {
    "memoryTrimming": trimming,
    "memorySummarization": summarizing,
    "memoryCompacting": compacting,
}
_INJECTION = "memoryInjection"


class Strategy(TypedDict):
    """A strategy as `run_agent`, `AgentSpec`, `Conversation.configure` and `Memory.configure_agent` take it."""

    policy: Policy | None
    cross_session: CrossSession


def strategy(given: MemoryStrategy | None = None, memory_injection: bool | None = None) -> Strategy:
    """The policy, None where nothing is said of it, and whether a summary is injected, which `memory_injection` may say
    too. Raises InvalidPolicy for an unusable policy, InvalidInput for unusable switches and where the two differ."""
    policy, injection = _read(given)
    if None not in (injection, memory_injection) and injection != memory_injection:
        raise InvalidInput(f"memory_injection and {_INJECTION} are names for the same, but differ; give one of them")
    latest = memory_injection if injection is None else injection
    return Strategy(policy=policy, cross_session=CrossSession(latest=latest))


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
    return (none() if off else None), injection
