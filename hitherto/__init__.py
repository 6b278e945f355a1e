"""Hitherto: conversation memory for LLM agents. Every message kept, every turn within its token budget.

A name is imported when it is used for the first time: `import hitherto` alone takes next to no time.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    # With an alias, a name is public to type checkers.
    # isort: off
    from hitherto.core.context.expansion import Expansion as Expansion
    from hitherto.core.context.manifest import KeptContext as KeptContext
    from hitherto.core.context.manifest import Manifest as Manifest
    from hitherto.core.cross_session import CrossSession as CrossSession, CrossSessionLike as CrossSessionLike
    from hitherto.core.digests.digest import Digest as Digest
    from hitherto.core.digests.digest import Backlog as Backlog
    from hitherto.core.documents import Document as Document, KeptDocument as KeptDocument
    from hitherto.core.facts.fact import (
        Evidence as Evidence,
        Fact as Fact,
        FactEvent as FactEvent,
        FactState as FactState,
        Subject as Subject,
        Visibility as Visibility,
    )
    from hitherto.core.facts.queries import AddedFact as AddedFact
    from hitherto.core.key import ApiKey as ApiKey, Right as Right
    from hitherto.core.ledger import Costs as Costs
    from hitherto.core.log.branch import Branch as Branch
    from hitherto.core.log.conversations import (
        AgentDefaults as AgentDefaults,
        ConversationInfo as ConversationInfo,
        ScopeCounts as ScopeCounts,
        UserDefaults as UserDefaults,
    )
    from hitherto.core.log.frontier import DigestAction as DigestAction
    from hitherto.core.log.head import Head as Head
    from hitherto.core.log.message import Call as Call, Logged as Logged, Message as Message, Wire as Wire
    from hitherto.core.log.transcript import (
        LogPage as LogPage,
        Transcript as Transcript,
        TranscriptEntry as TranscriptEntry,
    )
    from hitherto.core.policy.policy import Policy as Policy
    from hitherto.core.policy.presets import (
        PolicyLike as PolicyLike,
        balanced as balanced,
        chunks as chunks,
        native as native,
        none as none,
        policy_of as policy_of,
        redact as redact,
        rolling as rolling,
        sliding_window as sliding_window,
        summarize as summarize,
        token_threshold as token_threshold,
        trim as trim,
    )
    from hitherto.core.policy.view import View as View
    from hitherto.core.recall.filter import EntryKind as EntryKind
    from hitherto.core.run import EventKind as EventKind, Run as Run, RunEvent as RunEvent, RunStatus as RunStatus
    from hitherto.core.scope import Scope as Scope
    from hitherto.engine.context.context import Context as Context
    from hitherto.engine.context.recalled import RecallOptions as RecallOptions
    from hitherto.engine.conversation import Conversation as Conversation
    from hitherto.engine.documents.documents import Documents as Documents
    from hitherto.engine.export.export import ExportReport as ExportReport
    from hitherto.engine.export.imports import ImportReport as ImportReport
    from hitherto.engine.facts.facts import Facts as Facts
    from hitherto.engine.facts.forget import ForgottenFact as ForgottenFact
    from hitherto.engine.keys import Keys as Keys, NewKey as NewKey
    from hitherto.engine.listing import ConversationPage as ConversationPage, ScopePage as ScopePage
    from hitherto.engine.log.append import AppendResult as AppendResult
    from hitherto.engine.log.erase_scope import ErasureReport as ErasureReport
    from hitherto.engine.memory import Memory as Memory
    from hitherto.engine.recall.recall import Hit as Hit, RecallResult as RecallResult, Scores as Scores
    from hitherto.engine.runs import Runs as Runs
    from hitherto.engine.services import MemorySettings as MemorySettings
    from hitherto.engine.turn import Turn as Turn
    from hitherto.errors import HithertoError as HithertoError
    from hitherto.http.client import connect as connect, connect_sync as connect_sync
    from hitherto.sync.facade import (
        SyncConversation as SyncConversation,
        SyncDocuments as SyncDocuments,
        SyncFacts as SyncFacts,
        SyncKeys as SyncKeys,
        SyncMemory as SyncMemory,
        SyncRuns as SyncRuns,
        SyncTurn as SyncTurn,
        open_sync as open_sync,
    )
    from hitherto.wire.chat import assistant as assistant, system as system, tool_result as tool_result, user as user
    from hitherto.wiring import Opening as Opening, open as open  # noqa: A004 (the name users read: hitherto.open)

_NAMES = {
    "core.context.expansion": "Expansion",
    "core.context.manifest": "KeptContext Manifest",
    "core.cross_session": "CrossSession CrossSessionLike",
    "core.digests.digest": "Backlog Digest",
    "core.documents": "Document KeptDocument",
    "core.facts.fact": "Evidence Fact FactEvent FactState Subject Visibility",
    "core.facts.queries": "AddedFact",
    "core.key": "ApiKey Right",
    "core.ledger": "Costs",
    "core.log.branch": "Branch",
    "core.log.conversations": "AgentDefaults ConversationInfo ScopeCounts UserDefaults",
    "core.log.frontier": "DigestAction",
    "core.log.head": "Head",
    "core.log.message": "Call Logged Message Wire",
    "core.log.transcript": "LogPage Transcript TranscriptEntry",
    "core.policy.policy": "Policy",
    "core.policy.presets": (
        "PolicyLike balanced chunks native none policy_of redact rolling sliding_window summarize token_threshold trim"
    ),
    "core.policy.view": "View",
    "core.recall.filter": "EntryKind",
    "core.run": "EventKind Run RunEvent RunStatus",
    "core.scope": "Scope",
    "engine.context.context": "Context",
    "engine.context.recalled": "RecallOptions",
    "engine.conversation": "Conversation",
    "engine.documents.documents": "Documents",
    "engine.export.export": "ExportReport",
    "engine.export.imports": "ImportReport",
    "engine.facts.facts": "Facts",
    "engine.facts.forget": "ForgottenFact",
    "engine.keys": "Keys NewKey",
    "engine.listing": "ConversationPage ScopePage",
    "engine.log.append": "AppendResult",
    "engine.log.erase_scope": "ErasureReport",
    "engine.memory": "Memory",
    "engine.recall.recall": "Hit RecallResult Scores",
    "engine.runs": "Runs",
    "engine.services": "MemorySettings",
    "engine.turn": "Turn",
    "errors": "HithertoError",
    "http.client": "connect connect_sync",
    "sync.facade": "SyncConversation SyncDocuments SyncFacts SyncKeys SyncMemory SyncRuns SyncTurn open_sync",
    "wire.chat": "assistant system tool_result user",
    "wiring": "Opening open",
}
"""The public names of each module."""

_MODULES = {name: f"hitherto.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__: list[str]

if not _TYPE_CHECKING:
    __all__ = sorted(_MODULES)  # noqa: PLE0605 (it is a list)  # pyright: ignore[reportUnsupportedDunderAll]

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'hitherto' has no attribute {name!r}")
        found = globals()[name] = getattr(_import_module(_MODULES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
