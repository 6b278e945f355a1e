"""A timeout for every tool of a run."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from agents import FunctionTool, Tool

TOOL_TIMEOUT = 300.0
"""Seconds that a function tool may take which has no timeout of its own."""


def timed(tools: Sequence[Tool]) -> list[Tool]:
    """The tools, those without a timeout with `TOOL_TIMEOUT`. When it is over, the model is told so, and the run goes
    on. The thread of a synchronous tool cannot be stopped: it goes on beside."""
    return [_timed(one) if isinstance(one, FunctionTool) and one.timeout_seconds is None else one for one in tools]


def _timed(tool: FunctionTool) -> FunctionTool:
    made = copy(tool)  # the application may use it elsewhere
    # After the SDK's check, which takes no timeout for a synchronous tool: a run would wait for its thread for ever.
    made.timeout_seconds = TOOL_TIMEOUT
    return made
