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
    monkeypatch.setenv("HITHERTO_LEASE_TIMEOUT", text)
    assert Settings.load().lease_timeout == timedelta(seconds=seconds)


def test_an_empty_variable_is_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_DATABASE", "")
    monkeypatch.setenv("HITHERTO_MODEL", "")
    assert Settings.load().database is None
    assert Settings.load().model == "extractive"


def test_a_home_below_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_DATA_DIR", "~/memory")
    assert Settings.load().data_dir == Path.home() / "memory"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", "many"),
        ("budget", 0),
        ("pool_size", 0),
        ("lease_timeout", "soon"),
        ("lease_timeout", 0.05),
        ("lease_timeout", 7_200),
        ("model_max_attempts", 0),
        ("digest_max_attempts", 0),
        ("backoff", -1),
        ("breaker_failures", 0),
        ("breaker_cooldown", 0),
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
        Settings.load(None, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("budget", "many", "it should be a whole number"),
        ("model_timeout", "soon", "it should be a valid number"),
        ("tracing", "perhaps", "it should be true or false"),
        ("backoff", "soon", "it should be a number of seconds, or a duration like PT5M"),
        ("pool_size", 0, "it should be greater than or equal to 1"),
        ("pool_size", True, "it is True; give a number"),
        ("rest_after", True, "it is True; give a number"),
        ("grace", False, "it is False; give a number"),
        ("rest_after", -5, "it should be greater than or equal to 0 seconds"),
        ("rest_after", 10**9, "it should be less than or equal to 30 days"),
        ("keep_contexts_for", 0, "it should be greater than 0 seconds"),
        ("lease_timeout", 0.05, "it should be greater than or equal to 0.1 seconds"),
        ("model_provider", "acme", "it should be 'openai', 'azure', 'ollama' or 'anthropic'"),
        ("database", "", "it should have at least 1 character"),
        *(
            (
                "cors_origins",
                f"https://app.example.com, {origin}",
                f"{origin!r} is no origin of web pages; write it as https://app.example.com or http://localhost:3000, "
                "with no path behind it, or * for all",
            )
            for origin in (
                "foo",
                "https://",
                "https://app.example.com/",
                "https://*:80:90",
                "null",
                "app.example.com:80",
            )
        ),
        ("fact_categories", "...", "the category '...' has no word in it, or cannot be printed; name it in words"),
    ],
)
def test_why_it_is_unusable_is_said_in_plain_words(name: str, value: object, why: str) -> None:
    with pytest.raises(InvalidSettings) as raised:
        Settings.load(None, **{name: value})
    assert str(raised.value) == f"the setting {name} (HITHERTO_{name.upper()}) is unusable: {why}"


@pytest.mark.parametrize(("given", "meant"), [(True, "scope"), ("False", "off"), (False, "off")])
def test_a_truth_value_says_where_from_too(given: object, meant: str) -> None:
    assert Settings.load(recall=given).recall == meant


def test_origins_are_as_browsers_send_them() -> None:
    given = "https://App.example.com, http://localhost:3000, http://[::1]:80, chrome-extension://abc, *"
    assert Settings.load(cors_origins=given).cors_origins == tuple(given.lower().split(", "))


@pytest.mark.parametrize("spelled", ["current city", "Current city", "current-city", "CURRENT_CITY", " current  city "])
def test_a_single_category_is_the_one_that_is_meant(monkeypatch: pytest.MonkeyPatch, spelled: str) -> None:
    """Capitals, dashes, underscores and blanks make no difference; it is kept as it is defined."""
    monkeypatch.setenv("HITHERTO_FACT_CATEGORIES", "Current city,hobby")
    monkeypatch.setenv("HITHERTO_SINGLE_FACT_CATEGORIES", f"{spelled},hobby,{spelled}")
    assert Settings.load().single_fact_categories == ("Current city", "hobby")
    assert Settings.load(single_fact_categories=[spelled]).single_fact_categories == ("Current city",)


@pytest.mark.parametrize("name", ["city", "other", "current"])
def test_a_single_category_is_one_that_is_defined(name: str) -> None:
    with pytest.raises(InvalidSettings, match=f"'{name}' is none of current city, hobby .*name it there too"):
        Settings.load(fact_categories=["current city", "hobby"], single_fact_categories=[name])


def test_a_ceiling_of_zero_is_told_from_none() -> None:
    with pytest.raises(InvalidSettings, match="would stop all digests; leave it out for none"):
        Settings.load(daily_tokens=0)


def test_an_unknown_setting_is_named_and_the_one_that_may_be_meant() -> None:
    with pytest.raises(InvalidSettings, match=r"^'modle' is not a setting; did you mean 'model'\?$"):
        Settings.load(modle="x")
    with pytest.raises(InvalidSettings, match=r"'zzz' is not a setting; known: .*, budget, .*, worker"):
        Settings.load(zzz=1)


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_MODEL_KEY", "sk-secret")
    assert "sk-secret" not in repr(Settings.load())


def test_neighbors_are_joined_for_a_server_of_ones_own() -> None:
    assert not Settings.load().joins_neighbors
    assert Settings.load(model_provider="ollama").joins_neighbors
    assert Settings.load(model_provider="openai", model_base_url="http://localhost:8000/v1").joins_neighbors
    assert not Settings.load(model_provider="ollama", join_neighbors=False).joins_neighbors
