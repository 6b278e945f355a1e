"""Hitherto: conversation memory for LLM agents. Every message kept, every turn within its token budget."""

from hitherto.core.fact import Fact, Subject
from hitherto.core.manifest import Manifest
from hitherto.core.message import Message
from hitherto.core.policy import Policy
from hitherto.core.presets import (
    chunks,
    compact,
    native,
    none,
    rolling,
    sliding_window,
    summarize,
    token_threshold,
    trim,
)
from hitherto.core.scope import Scope
from hitherto.engine.appending import Appended
from hitherto.engine.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.engine.facts import Facts
from hitherto.engine.memory import Memory
from hitherto.engine.recall import Hit, Recall
from hitherto.engine.recalling import Recalling
from hitherto.errors import HithertoError
from hitherto.wire.chat import Call, assistant, system, tool_result, user
from hitherto.wiring import open  # noqa: A004 (the name users read: hitherto.open)

__all__ = [
    "Appended",
    "Call",
    "Context",
    "Conversation",
    "Fact",
    "Facts",
    "Hit",
    "HithertoError",
    "Manifest",
    "Memory",
    "Message",
    "Policy",
    "Recall",
    "Recalling",
    "Scope",
    "Subject",
    "assistant",
    "chunks",
    "compact",
    "native",
    "none",
    "open",
    "rolling",
    "sliding_window",
    "summarize",
    "system",
    "token_threshold",
    "tool_result",
    "trim",
    "user",
]
