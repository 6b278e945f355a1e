"""Hitherto: conversation memory for LLM agents. Every message kept, every turn within its token budget.

A name is imported when it is used for the first time: `import hitherto` alone takes next to no time.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from hitherto.core.context.expansion import Expansion
    from hitherto.core.context.kept import KeptContext
    from hitherto.core.context.manifest import Manifest
    from hitherto.core.cross_session import CrossSession, CrossSessionLike
    from hitherto.core.digests.digest import Digest
    from hitherto.core.digests.work import Backlog
    from hitherto.core.documents.document import Document, KeptDocument
    from hitherto.core.facts.fact import Evidence, Fact, FactEvent, FactState, Subject, Visibility
    from hitherto.core.facts.queries import AddedFact
    from hitherto.core.key import ApiKey, Right
    from hitherto.core.ledger import Costs
    from hitherto.core.log.conversations import AgentDefaults, ConversationInfo, ScopeCounts
    from hitherto.core.log.frontier import DigestAction
    from hitherto.core.log.head import Head
    from hitherto.core.log.message import Call, Logged, Message, Wire
    from hitherto.core.policy.policy import Policy
    from hitherto.core.policy.presets import (
        PolicyLike,
        balanced,
        chunks,
        native,
        none,
        policy_of,
        redact,
        rolling,
        sliding_window,
        summarize,
        token_threshold,
        trim,
    )
    from hitherto.core.policy.view import View
    from hitherto.core.recall.filter import EntryKind
    from hitherto.core.run import EventKind, Run, RunEvent, RunStatus
    from hitherto.core.scope import Scope
    from hitherto.engine.context.context import Context
    from hitherto.engine.context.recalled import RecallOptions
    from hitherto.engine.conversation import Conversation
    from hitherto.engine.documents.documents import Documents
    from hitherto.engine.export.export import ExportReport
    from hitherto.engine.export.imports import ImportReport
    from hitherto.engine.facts.facts import Facts
    from hitherto.engine.keys import Keys, NewKey
    from hitherto.engine.listing import ConversationPage, ScopePage
    from hitherto.engine.log.append import AppendResult
    from hitherto.engine.log.erase_scope import ErasureReport
    from hitherto.engine.memory import Memory
    from hitherto.engine.recall.recall import Hit, RecallResult, Scores
    from hitherto.engine.runs import Runs
    from hitherto.engine.services import MemorySettings
    from hitherto.engine.turn import Turn
    from hitherto.errors import HithertoError
    from hitherto.http.client import connect, connect_sync
    from hitherto.sync.facade import (
        SyncConversation,
        SyncDocuments,
        SyncFacts,
        SyncKeys,
        SyncMemory,
        SyncRuns,
        SyncTurn,
        open_sync,
    )
    from hitherto.wire.chat import assistant, system, tool_result, user
    from hitherto.wiring import Opening, open  # noqa: A004 (the name users read: hitherto.open)

_NAMES = {
    "hitherto.core.context.expansion": ("Expansion",),
    "hitherto.core.context.kept": ("KeptContext",),
    "hitherto.core.context.manifest": ("Manifest",),
    "hitherto.core.cross_session": ("CrossSession", "CrossSessionLike"),
    "hitherto.core.digests.digest": ("Digest",),
    "hitherto.core.documents.document": ("Document", "KeptDocument"),
    "hitherto.core.facts.fact": (
        "Evidence",
        "Fact",
        "FactEvent",
        "FactState",
        "Subject",
        "Visibility",
    ),
    "hitherto.core.key": ("ApiKey", "Right"),
    "hitherto.core.ledger": ("Costs",),
    "hitherto.core.log.frontier": ("DigestAction",),
    "hitherto.core.log.head": ("Head",),
    "hitherto.core.log.message": (
        "Call",
        "Logged",
        "Message",
        "Wire",
    ),
    "hitherto.core.policy.policy": ("Policy",),
    "hitherto.core.policy.presets": (
        "PolicyLike",
        "balanced",
        "chunks",
        "native",
        "none",
        "policy_of",
        "redact",
        "rolling",
        "sliding_window",
        "summarize",
        "token_threshold",
        "trim",
    ),
    "hitherto.core.policy.view": ("View",),
    "hitherto.core.recall.filter": ("EntryKind",),
    "hitherto.core.run": ("EventKind", "Run", "RunEvent", "RunStatus"),
    "hitherto.core.scope": ("Scope",),
    "hitherto.engine.context.context": ("Context",),
    "hitherto.engine.context.recalled": ("RecallOptions",),
    "hitherto.engine.conversation": ("Conversation",),
    "hitherto.engine.documents.documents": ("Documents",),
    "hitherto.engine.facts.facts": ("Facts",),
    "hitherto.engine.log.append": ("AppendResult",),
    "hitherto.engine.export.export": ("ExportReport",),
    "hitherto.engine.export.imports": ("ImportReport",),
    "hitherto.engine.log.erase_scope": ("ErasureReport",),
    "hitherto.engine.memory": ("Memory",),
    "hitherto.engine.recall.recall": (
        "Hit",
        "RecallResult",
        "Scores",
    ),
    "hitherto.engine.keys": ("Keys", "NewKey"),
    "hitherto.http.client": ("connect", "connect_sync"),
    "hitherto.engine.listing": ("ConversationPage", "ScopePage"),
    "hitherto.engine.runs": ("Runs",),
    "hitherto.engine.services": ("MemorySettings",),
    "hitherto.engine.turn": ("Turn",),
    "hitherto.errors": ("HithertoError",),
    "hitherto.core.digests.work": ("Backlog",),
    "hitherto.core.facts.queries": ("AddedFact",),
    "hitherto.core.log.conversations": ("AgentDefaults", "ConversationInfo", "ScopeCounts"),
    "hitherto.sync.facade": (
        "SyncConversation",
        "SyncDocuments",
        "SyncFacts",
        "SyncKeys",
        "SyncMemory",
        "SyncRuns",
        "SyncTurn",
        "open_sync",
    ),
    "hitherto.wire.chat": (
        "assistant",
        "system",
        "tool_result",
        "user",
    ),
    "hitherto.wiring": (
        "Opening",
        "open",
    ),
}
"""The public names of each module."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "AddedFact",
    "AgentDefaults",
    "ApiKey",
    "AppendResult",
    "Backlog",
    "Call",
    "Context",
    "Conversation",
    "ConversationInfo",
    "ConversationPage",
    "Costs",
    "CrossSession",
    "CrossSessionLike",
    "Digest",
    "DigestAction",
    "Document",
    "Documents",
    "EntryKind",
    "ErasureReport",
    "EventKind",
    "Evidence",
    "Expansion",
    "ExportReport",
    "Fact",
    "FactEvent",
    "FactState",
    "Facts",
    "Head",
    "Hit",
    "HithertoError",
    "ImportReport",
    "KeptContext",
    "KeptDocument",
    "Keys",
    "Logged",
    "Manifest",
    "Memory",
    "MemorySettings",
    "Message",
    "NewKey",
    "Opening",
    "Policy",
    "PolicyLike",
    "RecallOptions",
    "RecallResult",
    "Right",
    "Run",
    "RunEvent",
    "RunStatus",
    "Runs",
    "Scope",
    "ScopeCounts",
    "ScopePage",
    "Scores",
    "Subject",
    "SyncConversation",
    "SyncDocuments",
    "SyncFacts",
    "SyncKeys",
    "SyncMemory",
    "SyncRuns",
    "SyncTurn",
    "Turn",
    "View",
    "Visibility",
    "Wire",
    "assistant",
    "balanced",
    "chunks",
    "connect",
    "connect_sync",
    "native",
    "none",
    "open",
    "open_sync",
    "policy_of",
    "redact",
    "rolling",
    "sliding_window",
    "summarize",
    "system",
    "token_threshold",
    "tool_result",
    "trim",
    "user",
]


if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'hitherto' has no attribute {name!r}")
        found = globals()[name] = getattr(_import_module(_MODULES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
