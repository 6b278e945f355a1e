"""Price lists: what counts as one, and what things cost by it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.model_family import takes_cache_breakpoints
from hitherto.core.price import Price, PriceList, price_list
from hitherto.errors import InvalidInput
from hitherto.pricing import listed as listed_in
from hitherto.pricing import shipped

MINI = {"input": 0.4, "cached_input": 0.1, "output": 1.6, "window": 1_000_000}


def listed(**changed: Any) -> bytes:
    whole = {"date": "2026-01-31", "models": {"mini": MINI}, **changed}
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


def model(**changed: Any) -> bytes:
    fields = {name: value for name, value in {**MINI, **changed}.items() if value is not None}
    return listed(models={"mini": fields})


def priced(data: bytes, name: str | None = "mini") -> Price:
    return price_list(data, "it").named(name)


def test_the_shipped_list() -> None:
    assert shipped() is shipped() is listed_in(None)
    assert "gpt-4.1-mini" in shipped().prices
    for name, one in shipped().prices.items():
        assert one.model == name
        assert date.fromisoformat(one.date) <= date.today()
        assert 0 < one.cached_input < one.input < one.output
        assert one.window >= 100_000
        assert one.cache_step == 128
        assert (one.cache_write is None) == (one.cache_breakpoints == "none")
        assert one.cache_write in (None, 1.25 * one.input)
        assert one.cache_from == {"claude-haiku-4-5": 4_096, "claude-opus-5": 512}.get(name, 1_024)
        assert name.startswith("claude") == (one.cache_breakpoints == "explicit")
        assert (one.cache_breakpoints == "implicit") == takes_cache_breakpoints(name)


def test_what_a_request_costs() -> None:
    price = priced(listed())
    assert price.prompt(1_000_000, 0) == pytest.approx(0.4)
    assert price.prompt(1_000_000, 600_000) == pytest.approx(0.4 * 0.4 + 0.6 * 0.1)
    assert price.answer(500_000) == pytest.approx(0.8)
    assert price.date == "2026-01-31"


def test_a_provider_that_charges_for_what_is_put_into_its_cache() -> None:
    price = priced(model(cache_write=0.5), None)
    assert price.prompt(2_000, 1_024) == pytest.approx((976 * 0.5 + 1_024 * 0.1) / 1e6)
    assert price.prompt(1_023, 0) == pytest.approx(1_023 * 0.4 / 1e6), "too short to be put into it"


def test_the_cache_begins_late_and_goes_in_steps() -> None:
    price = priced(listed())
    assert [price.cached(n) for n in (0, 1_023, 1_024, 1_151, 1_152, 5_000)] == [0, 0, 1_024, 1_024, 1_152, 4_992]
    other = priced(listed(cache={"at_least": 10, "step": 4}))
    assert [other.cached(n) for n in (9, 10, 13, 14, 17, 18)] == [0, 10, 10, 14, 14, 18]


@given(st.integers(0, 10**7))
def test_never_more_from_the_cache_than_was_repeated(repeated: int) -> None:
    cached = priced(listed()).cached(repeated)
    assert cached <= repeated
    assert cached == 0 or (cached >= 1_024 and repeated - cached < 128)


EXPLICIT = model(cache_write=0.5, cache={"breakpoints": "explicit"})
IMPLICIT = model(cache_write=0.5, cache={"breakpoints": "implicit"})


def test_a_cache_that_ends_at_breakpoints() -> None:
    """As Anthropic's: what is served ends where the request before had a breakpoint, in what is the same."""
    price = priced(EXPLICIT)
    before = (1_023, 1_500, 4_000)
    found = [price.cached(n, breakpoints=before, end=5_000) for n in (0, 1_499, 1_500, 3_999, 4_000, 5_000, 9_000)]
    assert found == [0, 0, 1_500, 1_500, 4_000, 4_000, 4_000]
    assert price.cached(9_000, breakpoints=(), end=5_000) == 0, "without breakpoints nothing is put into it"
    assert price.cached(1_200) == 1_152, "where they are not known, as if they were everywhere"


def test_a_cache_that_ends_where_the_prompt_before_did_too() -> None:
    """As OpenAI's since GPT-5.6, which sets a breakpoint of its own behind the newest message."""
    price = priced(IMPLICIT)
    found = [price.cached(n, breakpoints=(1_500,), end=5_000) for n in (1_499, 1_500, 4_999, 5_000, 9_000)]
    assert found == [0, 1_500, 1_500, 5_000, 5_000]
    assert price.cached(900, breakpoints=(800,), end=900) == 0, "too short"


def test_a_cache_that_ends_in_steps_needs_no_breakpoints() -> None:
    assert priced(listed()).cached(5_000, breakpoints=(), end=0) == 4_992


def test_what_is_put_into_a_cache() -> None:
    explicit, implicit = priced(EXPLICIT), priced(IMPLICIT)
    served, written, rest = 1_500 * 0.1, 2_500 * 0.5, 1_000 * 0.4
    assert explicit.prompt(5_000, 1_500, breakpoints=(1_500, 4_000)) == pytest.approx((served + written + rest) / 1e6)
    assert explicit.prompt(5_000, 0, breakpoints=(900,)) == pytest.approx(5_000 * 0.4 / 1e6), "too short"
    assert explicit.prompt(5_000, 0) == explicit.call(5_000, 0, 0) == pytest.approx(5_000 * 0.4 / 1e6)
    assert implicit.prompt(5_000, 1_500, breakpoints=(1_500,)) == pytest.approx((served + 3_500 * 0.5) / 1e6)
    assert implicit.call(5_000, 1_500, 0) == pytest.approx((served + 3_500 * 0.5) / 1e6)


@given(
    st.sampled_from([EXPLICIT, IMPLICIT]),
    st.integers(0, 10**5),
    st.lists(st.integers(0, 10**5)),
    st.integers(0, 10**5),
)
def test_served_up_to_a_breakpoint_and_no_more_than_was_repeated(
    data: bytes, repeated: int, breakpoints: list[int], end: int
) -> None:
    cached = priced(data).cached(repeated, breakpoints=breakpoints, end=end)
    assert cached == 0 or (1_024 <= cached <= repeated and cached in (*breakpoints, end))


def test_a_model_may_have_a_cache_of_its_own() -> None:
    whole = listed(models={"mini": MINI, "own": {**MINI, "cache": {"at_least": 4_096}}}, cache={"step": 4})
    assert (priced(whole).cache_from, priced(whole).cache_step) == (1_024, 4)
    assert (priced(whole, "own").cache_from, priced(whole, "own").cache_step) == (4_096, 4)


def test_a_list_of_one_model_needs_no_name() -> None:
    assert priced(listed(), None) == priced(listed())
    with pytest.raises(InvalidInput, match="is to name a model; it has: a, b"):
        priced(listed(models={"a": MINI, "b": MINI}), None)


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
        (listed(cache={"step": 0}), "mine: cache.step is 0"),
        (listed(cache={"breakpoints": True}), "cache.breakpoints is True; it must be one of none, implicit, explicit"),
        (model(cache={"breakpoints": ["none"]}), r"mini.cache.breakpoints is \['none'\]"),
        (model(cache={"at_least": -1}), "mine: mini.cache.at_least is -1; give a number of tokens"),
        (model(cache={"ttl": 5}), "mini.cache has the unknown field 'ttl'"),
        (listed(models={"mini": 0.4}), "mini is 0.4; give a JSON object"),
        (model(output=None), "mini lacks 'output'"),
        (model(tokens=1), "unknown field 'tokens'"),
        (model(input="0.4"), "mini.input is '0.4'; give US dollars"),
        (model(output=-1), "mini.output is -1"),
        (model(output=True), "mini.output is True"),
        (model(output=float("nan")), "mini.output is nan"),
        (model(output=float("inf")), "mini.output is inf"),
        (model(output=10**400), "mini.output is more than any price"),
        (model(window=0), "mini.window is 0; give a number of tokens"),
        (model(window=1e6), "mini.window is 1000000.0"),
        (model(cached_input=0.5), "cached input dearer than input"),
        (listed(models={"mini": MINI, "maxi": {**MINI, "output": -1}}), "mine: maxi.output is -1"),
    ],
)
def test_what_is_no_price_list(data: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        price_list(data, "mine").named("mini")


def test_a_price_is_a_value() -> None:
    assert priced(listed()) == Price(
        model="mini", date="2026-01-31", input=0.4, cached_input=0.1, output=1.6, window=1_000_000
    )


# The prices of calls


@pytest.mark.parametrize(
    ("model", "of"),
    [
        ("gpt-4o", "gpt-4o"),
        ("openai/gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("openai/gpt-4o-2024-11-20", "gpt-4o"),
        ("ft:gpt-4o-2024-11-20:acme::a1", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("azure/gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("ft:gpt-4o:acme:own:b2", "ft:gpt-4o:acme:own:b2"),
        ("vendor/large", "vendor/large"),
        ("gpt-4o-mini", None),
        ("gpt-4", None),
        ("large", None),
        ("GPT-4o", None),
        ("", None),
    ],
)
def test_a_model_is_found_by_its_name_or_its_family(model: str, of: str | None) -> None:
    names = ["gpt-4o", "gpt-4o-2024-05-13", "ft:gpt-4o:acme:own:b2", "vendor/large"]
    found = price_list(listed(models=dict.fromkeys(names, MINI)), "it").of(model)
    assert (None if found is None else found.model) == of


def test_what_a_call_costs() -> None:
    price = priced(listed())
    assert price.call(1_000_000, 600_000, 500_000) == pytest.approx(0.4 * 0.4 + 0.6 * 0.1 + 0.8)
    assert price.call(1_000_000, None, None) == pytest.approx(0.4)
    assert price.call(None, None, 500_000) == pytest.approx(0.8)
    assert price.call(None, 100, None) == 0, "no cache has more than the prompt"
    assert priced(model(cache_write=0.5)).call(2_000, 1_024, 0) == pytest.approx((976 * 0.5 + 1_024 * 0.1) / 1e6)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_cache_never_makes_a_call_dearer(tokens_in: int, cached: int, out: int) -> None:
    price = priced(listed())
    assert 0 <= price.call(tokens_in, cached, out) <= price.call(tokens_in, 0, out)


def test_a_list_of_ones_own_stands_for_itself(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_bytes(listed())
    assert listed_in(mine) == PriceList(str(mine), {"mini": priced(listed())})
    assert listed_in(mine).of("gpt-4o") is None
    with pytest.raises(InvalidInput, match=r"cannot read the price list .*nowhere\.json: No such file"):
        listed_in(tmp_path / "nowhere.json")
    with pytest.raises(InvalidInput, match=r"cannot read the price list .*: Is a directory"):
        listed_in(tmp_path)
    mine.write_bytes(model(input=-0.4))
    with pytest.raises(InvalidInput, match=r"mine\.json: mini\.input is -0\.4; give US dollars"):
        listed_in(mine)


def test_what_is_written_to_the_cache_costs_the_write_price() -> None:
    price = shipped().named("claude-haiku-4-5")
    assert price.call(10_000, 2_000, 0, 5_000) == pytest.approx((2_000 * 0.1 + 5_000 * 1.25 + 3_000 * 1.0) / 1e6)
    assert price.call(10_000, 2_000, 0, 0) == price.call(10_000, 2_000, 0)
    assert price.call(10_000, 2_000, 0, 10**9) == pytest.approx((2_000 * 0.1 + 8_000 * 1.25) / 1e6)
    unlisted = shipped().named("gpt-4.1")
    assert unlisted.call(10_000, 2_000, 0, 5_000) == unlisted.call(10_000, 2_000, 0)
