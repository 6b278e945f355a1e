"""Documents, over HTTP."""

from __future__ import annotations

from tests.engine.documents.test_documents import *  # noqa: F403

KEPT = {
    "test_a_document_is_kept_cut_and_found",
    "test_documents_are_listed_by_what_they_are",
}
