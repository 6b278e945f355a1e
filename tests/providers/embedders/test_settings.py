"""What can be set of embedders and recall, and how it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto.core.recall.trigger_phrases import TRIGGERS
from hitherto.errors import InvalidSettings
from hitherto.settings import Settings


@pytest.mark.parametrize(
    ("given", "phrases"),
    [
        ("last time, remind me", ("last time", "remind me")),
        ("letztes Mal", ("letztes Mal",)),
        ('["last time, as I said", "上次"]', ("last time, as I said", "上次")),
        ("", TRIGGERS),
    ],
)
def test_phrases_are_set_with_commas_or_as_json(
    monkeypatch: pytest.MonkeyPatch, given: str, phrases: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HITHERTO_SEARCH_TRIGGERS", given)
    assert Settings.load().search_triggers == phrases


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"search_triggers": ()}, "leave 'triggers' out of HITHERTO_CROSS_SESSION"),
        ({"search_triggers": ["last time", "…"]}, "the phrase '…' has no word in it"),
        ({"search_triggers": "last time,,remind me"}, "the phrase '' has no word in it"),
        ({"search_triggers": '["last time"'}, "begins like a JSON list and is none"),
        ({"search_triggers": 7}, "HITHERTO_SEARCH_TRIGGERS"),
        ({"passage_overlap": 800}, "passages of 800 tokens (HITHERTO_PASSAGE_TOKENS) cannot share 800"),
        ({"passage_tokens": 64}, "passages of 64 tokens (HITHERTO_PASSAGE_TOKENS) cannot share 100"),
        ({"passage_overlap": -1}, "HITHERTO_PASSAGE_OVERLAP"),
        ({"passage_tokens": 0}, "HITHERTO_PASSAGE_TOKENS"),
        ({"embedder": ""}, "HITHERTO_EMBEDDER"),
        ({"embedder_provider": "acme"}, "HITHERTO_EMBEDDER_PROVIDER"),
        ({"embedder_dimensions": 0}, "HITHERTO_EMBEDDER_DIMENSIONS"),
        ({"embedder_input_limit": 0}, "HITHERTO_EMBEDDER_INPUT_LIMIT"),
        ({"embedder_timeout": 0}, "HITHERTO_EMBEDDER_TIMEOUT"),
        ({"reranker_timeout": 0}, "HITHERTO_RERANKER_TIMEOUT"),
        ({"recall_share": 1}, "HITHERTO_RECALL_SHARE"),
        ({"cross_session": "sometimes"}, "HITHERTO_CROSS_SESSION"),
        ({"relevance_threshold": 1.5}, "HITHERTO_RELEVANCE_THRESHOLD"),
    ],
)
def test_an_unusable_setting_is_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        Settings.load(**settings)
    assert says in str(caught.value)


def test_passages_may_share_less_than_they_have() -> None:
    assert Settings.load(passage_tokens=64, passage_overlap=63).passage_overlap == 63


def test_keys_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_EMBEDDER_KEY", "sk-secret")
    monkeypatch.setenv("HITHERTO_RERANKER_KEY", "sk-secret")
    assert "sk-secret" not in repr(Settings.load())
