"""`hitherto doctor` on a model that answers as seed 002's prompt would have it."""

from __future__ import annotations

import pytest

from tests.acceptance.cli.doctoring import model_at, without_database
from tests.providers.models.endpoint import Endpoint, said

SEED = '{"summary": "They meet on Tuesday.", "facts": []}'


@pytest.mark.parametrize(
    ("answer", "found", "advice"),
    [
        (SEED, "makes a digest without facts: ", "digests that find facts understand it; others fail after a second"),
        ('{"answer": 42}', "makes a digest: ", "such digests fail after a second try"),
    ],
)
def test_what_becomes_of_its_answers(answer: str, found: str, advice: str) -> None:
    with Endpoint(said(answer)) as endpoint:
        line = without_database(**model_at(endpoint)).said("model", "warning")
    assert found in line
    assert advice in line
