"""What can be set, and how it is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hitherto.errors import InvalidSettings
from hitherto.settings import Settings


def test_calls_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_BUDGET", "500")
    assert Settings.load().budget == 500
    assert Settings.load(budget=None).budget == 500
    assert Settings.load(budget=700).budget == 700


@pytest.mark.parametrize(("text", "seconds"), [("300", 300), ("0.5", 0.5), ("PT2M", 120)])
def test_a_duration_is_seconds_or_iso(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    monkeypatch.setenv("HITHERTO_TAKE_OVER_AFTER", text)
    assert Settings.load().take_over_after == timedelta(seconds=seconds)


def test_an_empty_variable_is_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_DATABASE", "")
    monkeypatch.setenv("HITHERTO_MODEL", "")
    assert Settings.load().database is None
    assert Settings.load().model == "extractive"


def test_a_home_below_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_HOME", "~/memory")
    assert Settings.load().home == Path.home() / "memory"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", "many"),
        ("budget", 0),
        ("pool_size", 0),
        ("take_over_after", "soon"),
        ("take_over_after", 0.05),
        ("take_over_after", 7_200),
        ("model_tries", 0),
        ("digest_tries", 0),
        ("backoff", -1),
        ("breaker_failures", 0),
        ("breaker_rest", 0),
        ("daily_cost", 0),
        ("daily_cost", "0.0"),
        ("daily_cost", -1),
        ("daily_cost", "nan"),
        ("daily_tokens", 0),
        ("daily_tokens", 1.5),
        ("model_provider", "acme"),
        ("database", ""),
        ("grace", -1),
    ],
)
def test_an_unusable_setting_is_named(name: str, value: object) -> None:
    with pytest.raises(InvalidSettings, match=f"HITHERTO_{name.upper()}"):
        Settings.load(**{name: value})


def test_a_ceiling_of_zero_is_told_from_none() -> None:
    with pytest.raises(InvalidSettings, match="would stop all digests; leave it out for none"):
        Settings.load(daily_tokens=0)


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(InvalidSettings, match="budgt"):
        Settings.load(budgt=3)


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_MODEL_KEY", "sk-secret")
    assert "sk-secret" not in repr(Settings.load())
