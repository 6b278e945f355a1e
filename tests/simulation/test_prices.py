"""Price lists: what counts as one, and what things cost by it."""

from __future__ import annotations

import json
from datetime import date
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.errors import InvalidInput
from hitherto.simulation.prices import Price, price_of

SHIPPED = resources.files("hitherto").joinpath("data/prices.json").read_bytes()
MINI = {"input": 0.4, "cached_input": 0.1, "output": 1.6, "window": 1_000_000}


def listed(**changed: Any) -> bytes:
    whole = {"date": "2026-01-31", "models": {"mini": MINI}, **changed}
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


def model(**changed: Any) -> bytes:
    fields = {name: value for name, value in {**MINI, **changed}.items() if value is not None}
    return listed(models={"mini": fields})


def test_the_shipped_list() -> None:
    names = list(json.loads(SHIPPED)["models"])
    assert "gpt-4.1-mini" in names
    found = [price_of(name, SHIPPED, "it") for name in names]
    assert [one.model for one in found] == names
    for one in found:
        assert date.fromisoformat(one.date) <= date.today()
        assert 0 < one.cached_input < one.input < one.output
        assert one.window >= 100_000
        assert (one.cache_from, one.cache_step) == (1_024, 128)


def test_what_a_request_costs() -> None:
    price = price_of("mini", listed(), "it")
    assert price.prompt(1_000_000, 0) == pytest.approx(0.4)
    assert price.prompt(1_000_000, 600_000) == pytest.approx(0.4 * 0.4 + 0.6 * 0.1)
    assert price.answer(500_000) == pytest.approx(0.8)
    assert price.date == "2026-01-31"


def test_a_provider_that_charges_for_what_is_put_into_its_cache() -> None:
    price = price_of(None, model(cache_write=0.5), "it")
    assert price.prompt(2_000, 1_024) == pytest.approx((976 * 0.5 + 1_024 * 0.1) / 1e6)
    assert price.prompt(1_023, 0) == pytest.approx(1_023 * 0.4 / 1e6), "too short to be put into it"


def test_the_cache_begins_late_and_goes_in_steps() -> None:
    price = price_of("mini", listed(), "it")
    assert [price.cached(n) for n in (0, 1_023, 1_024, 1_151, 1_152, 5_000)] == [0, 0, 1_024, 1_024, 1_152, 4_992]
    other = price_of("mini", listed(cache={"at_least": 10, "step": 4}), "it")
    assert [other.cached(n) for n in (9, 10, 13, 14, 17, 18)] == [0, 10, 10, 14, 14, 18]


@given(st.integers(0, 10**7))
def test_never_more_from_the_cache_than_was_repeated(repeated: int) -> None:
    cached = price_of("mini", listed(), "it").cached(repeated)
    assert cached <= repeated
    assert cached == 0 or (cached >= 1_024 and repeated - cached < 128)


def test_a_list_of_one_model_needs_no_name() -> None:
    assert price_of(None, listed(), "it") == price_of("mini", listed(), "it")
    with pytest.raises(InvalidInput, match="is to name a model; it has: a, b"):
        price_of(None, listed(models={"a": MINI, "b": MINI}), "it")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "mine is no JSON"),
        (b"\xff", "mine is no JSON"),
        (b"[" * 100_000, "mine is no JSON"),
        (b"[]", "mine is .*; give a JSON object"),
        (listed(date=None), "mine lacks 'date'"),
        (listed(date=20260131), "date is 20260131"),
        (listed(models=None), "mine lacks 'models'"),
        (listed(models=[]), "models is .*; give a JSON object"),
        (listed(models={}), "no price of 'mini'; it has: none at all"),
        (listed(models={"maxi": MINI, "midi": MINI}), "mine has no price of 'mini'; it has: maxi, midi"),
        (listed(model="mini"), "unknown field 'model'; known: cache, date, models, source"),
        (listed(cache={"from": 1}), "unknown field 'from'"),
        (listed(cache={"step": 0}), "cache.step is 0"),
        (listed(models={"mini": 0.4}), "mini is 0.4; give a JSON object"),
        (model(output=None), "mini lacks 'output'"),
        (model(tokens=1), "unknown field 'tokens'"),
        (model(input="0.4"), "mini.input is '0.4'; give US dollars"),
        (model(output=-1), "mini.output is -1"),
        (model(output=True), "mini.output is True"),
        (model(output=float("nan")), "mini.output is nan"),
        (model(output=float("inf")), "mini.output is inf"),
        (model(window=0), "mini.window is 0; give a number of tokens"),
        (model(window=1e6), "mini.window is 1000000.0"),
        (model(cached_input=0.5), "cached input dearer than input"),
    ],
)
def test_what_is_no_price_list(data: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        price_of("mini", data, "mine")


def test_a_price_is_a_value() -> None:
    assert price_of("mini", listed(), "it") == Price(
        model="mini", date="2026-01-31", input=0.4, cached_input=0.1, output=1.6, window=1_000_000
    )
