"""No test of a provider sees the settings, keys and proxies of the machine."""

from __future__ import annotations

import pytest

from hitherto.settings import Settings


@pytest.fixture(autouse=True)
def _nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"HITHERTO_{name.upper()}", raising=False)
