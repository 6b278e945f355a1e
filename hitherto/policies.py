"""What policies are made of, in one place for who composes or extends them.

    from hitherto.policies import LastTurns, Policy, Redact, Stage, Summarise, Turns

    policy = Policy("mine", (
        Stage(Turns(8), LastTurns(3), Redact()),
        Stage(Turns(24), LastTurns(6), Summarise()),
    ))

A trigger or an action of one's own is a frozen dataclass that derives from one of these and is registered under a word
of its own. A package that has some names their module in the entry point group "hitherto.parts", so that policies with
them can be read wherever the package is installed.
"""

import logging
from importlib.metadata import entry_points

from hitherto.core.action import Action, Chunk, Compact, Drop, Redact, Summarise
from hitherto.core.keep import Keep, LastMessages, LastTokens, LastTurns, Nothing, Window
from hitherto.core.part import Part, register
from hitherto.core.policy import Policy, Stage
from hitherto.core.presets import (
    PRESETS,
    chunks,
    compact,
    native,
    none,
    parse,
    rolling,
    sliding_window,
    summarize,
    token_threshold,
    trim,
)
from hitherto.core.render import Prefix, Recalled, Render, ShadowTurn, SystemMessage
from hitherto.core.trigger import (
    AllOf,
    AnyOf,
    Fraction,
    Messages,
    Seen,
    Seq,
    Tokens,
    Trigger,
    Turns,
    Undigested,
)

GROUP = "hitherto.parts"

_log = logging.getLogger("hitherto")
_loaded: set[str] = set()


def discover() -> None:
    """Import the modules that installed packages name in the entry point group "hitherto.parts", each once.

    One that cannot be imported is logged and left out; policies with its parts are then refused by name.
    """
    for point in entry_points(group=GROUP):
        if point.value in _loaded:
            continue
        _loaded.add(point.value)
        try:
            point.load()
        except Exception:  # noqa: BLE001 (another package's defect must not keep this one from opening)
            _log.exception("The parts of %s could not be loaded", point.value)


__all__ = [
    "PRESETS",
    "Action",
    "AllOf",
    "AnyOf",
    "Chunk",
    "Compact",
    "Drop",
    "Fraction",
    "Keep",
    "LastMessages",
    "LastTokens",
    "LastTurns",
    "Messages",
    "Nothing",
    "Part",
    "Policy",
    "Prefix",
    "Recalled",
    "Redact",
    "Render",
    "Seen",
    "Seq",
    "ShadowTurn",
    "Stage",
    "Summarise",
    "SystemMessage",
    "Tokens",
    "Trigger",
    "Turns",
    "Undigested",
    "Window",
    "chunks",
    "compact",
    "discover",
    "native",
    "none",
    "parse",
    "register",
    "rolling",
    "sliding_window",
    "summarize",
    "token_threshold",
    "trim",
]
