"""The conformance suite of `DocumentStore`."""

from __future__ import annotations

from hitherto.testing.conformance.documents.archive import ArchiveCases
from hitherto.testing.conformance.documents.documents import DocumentCases


class DocumentConformance(
    DocumentCases,
    ArchiveCases,
):
    """Every promise of `DocumentStore`, as tests of the store that the fixture `store` yields."""
