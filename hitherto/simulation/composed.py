"""Policies of several stages, to compare with the presets."""

from __future__ import annotations

from hitherto.core.policy.action import Drop, Redact, Summarize
from hitherto.core.policy.keep import LastTokens
from hitherto.core.policy.policy import Policy, Stage
from hitherto.core.policy.render import SystemMessage
from hitherto.core.policy.trigger import AnyOf, Messages, Tokens

# The trigger and what is kept are far apart on purpose: each firing changes the start of the context, and what is sent
# between two firings comes from the provider's cache.
_OLD_RESULTS = Stage(Tokens(3_000), LastTokens(1_000), Redact())
_LONG = AnyOf((Tokens(6_000), Messages(60)))


def redact_summarize() -> Policy:
    """Old tool results become placeholders first; what still grows long becomes a short digest."""
    summarize = Stage(_LONG, LastTokens(800), Summarize(max_tokens=400), SystemMessage())
    return Policy("redact_summarize", (_OLD_RESULTS, summarize))


def redact_trim() -> Policy:
    """The same without a model: what still grows long is dropped."""
    return Policy("redact_trim", (_OLD_RESULTS, Stage(_LONG, LastTokens(1_000), Drop())))
