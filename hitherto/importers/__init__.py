"""Conversations and facts that other systems have written, read from their files, and imported by the public verbs."""

from __future__ import annotations

from hitherto.importers.files import read_file
from hitherto.importers.imported import ImportedConversation, ImportedFact, ImportedMessage, Unreadable
from hitherto.importers.write import ImportSummary, import_conversation, import_file

__all__ = [
    "ImportSummary",
    "ImportedConversation",
    "ImportedFact",
    "ImportedMessage",
    "Unreadable",
    "import_conversation",
    "import_file",
    "read_file",
]
