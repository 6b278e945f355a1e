"""What users build on changes only where that is meant."""

from __future__ import annotations

import json

import pytest

from tests.recorded.surface import FILE, surface


@pytest.mark.parametrize("part", ["names", "operations", "schemas"])
def test_it_is_as_recorded(part: str) -> None:
    """If a change is meant, run `python -m tests.recorded --write`, and say in the commit what it is."""
    assert surface()[part] == json.loads(FILE.read_text(encoding="utf-8"))[part]
