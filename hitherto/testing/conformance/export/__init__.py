"""Conformance of exports."""

from __future__ import annotations

from hitherto.testing.conformance.export.export import ExportCases


class ExportConformance(ExportCases):
    """Every promise of `ExportStore`, as tests: see `StoreConformance`."""
