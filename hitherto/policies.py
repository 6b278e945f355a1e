"""The parts of policies, in one place for composing or extending them.

    from hitherto.policies import LastTurns, Policy, Redact, Stage, Summarize, Turns

    policy = Policy("mine", (
        Stage(Turns(8), LastTurns(3), Redact()),
        Stage(Turns(24), LastTurns(6), Summarize()),
    ))

A custom trigger or action is a frozen dataclass that derives from one of these and is registered (`register`) under a
word of its own. A package with custom parts names their module in the entry point group "hitherto.components", so that
policies with these parts can be read wherever the package is installed.
"""

import logging
from functools import cache
from importlib.metadata import entry_points

from hitherto.core.policy.component import Component, register
from hitherto.core.policy.parts import (
    Action,
    Chunk,
    Compact,
    Drop,
    FindFacts,
    Keep,
    LastFraction,
    LastMessages,
    LastTokens,
    LastTurns,
    Nothing,
    Prefix,
    Recalled,
    Redact,
    Render,
    ShadowTurn,
    Shorten,
    Summarize,
    SystemMessage,
    Window,
)
from hitherto.core.policy.policy import Policy, Stage
from hitherto.core.policy.presets import (
    PRESETS,
    balanced,
    chunks,
    native,
    none,
    parse,
    redact,
    rolling,
    sliding_window,
    summarize,
    token_threshold,
    trim,
)
from hitherto.core.policy.trigger import (
    AllOf,
    AnyOf,
    Fraction,
    Messages,
    Seq,
    Tokens,
    Trigger,
    TriggerInput,
    Turns,
    Undigested,
)

GROUP = "hitherto.components"

_log = logging.getLogger("hitherto")


@cache
def discover() -> None:
    """Import the modules that installed packages name in the entry point group "hitherto.components".

    One that cannot be imported is logged and left out; policies with its parts are then refused by name. Only the first
    call in a process looks.
    """
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception:  # noqa: BLE001 (another package's defect must not keep this one from opening)
            _log.exception("The policy components of %s could not be loaded", point.value)


__all__ = [
    "PRESETS",
    "Action",
    "AllOf",
    "AnyOf",
    "Chunk",
    "Compact",
    "Component",
    "Drop",
    "FindFacts",
    "Fraction",
    "Keep",
    "LastFraction",
    "LastMessages",
    "LastTokens",
    "LastTurns",
    "Messages",
    "Nothing",
    "Policy",
    "Prefix",
    "Recalled",
    "Redact",
    "Render",
    "Seq",
    "ShadowTurn",
    "Shorten",
    "Stage",
    "Summarize",
    "SystemMessage",
    "Tokens",
    "Trigger",
    "TriggerInput",
    "Turns",
    "Undigested",
    "Window",
    "balanced",
    "chunks",
    "discover",
    "native",
    "none",
    "parse",
    "redact",
    "register",
    "rolling",
    "sliding_window",
    "summarize",
    "token_threshold",
    "trim",
]
