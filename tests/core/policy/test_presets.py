"""The presets: their defaults, the seeds' names for their parameters, and their form on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.errors import InvalidPolicy
from hitherto.policies import (
    PRESETS,
    AllOf,
    Chunk,
    Compact,
    Drop,
    FindFacts,
    Fraction,
    LastFraction,
    LastMessages,
    LastTurns,
    Messages,
    Nothing,
    Policy,
    Prefix,
    Recalled,
    Redact,
    Seq,
    ShadowTurn,
    Shorten,
    Stage,
    Summarize,
    SystemMessage,
    Tokens,
    Turns,
    Undigested,
    Window,
    chunks,
    native,
    none,
    parse,
    redact,
    rolling,
    sliding_window,
    summarize,
    token_threshold,
    trim,
)

# The seeds' own numbers; 003 states none but those it recommends.
TABLE: dict[str, tuple[Stage, ...]] = {
    "balanced": (
        Stage(
            AllOf((Fraction(0.5, of="view"), Fraction(0.1, of="budget"))),
            LastFraction(0.05),
            Shorten(),
            within_turn=True,
        ),
        Stage(Fraction(0.5, of="budget"), LastFraction(0.25), Summarize(needs_model=True), SystemMessage()),
        Stage(Tokens(2_000), Nothing(), FindFacts()),
    ),
    "none": (),
    "sliding_window": (Stage(Seq(5), Window(14, Nothing()), Summarize(), Prefix("[Previous context: {text}]\n\n")),),
    "token_threshold": (Stage(Tokens(10_000), LastMessages(10), Summarize(archive=False), SystemMessage()),),
    "chunks": (Stage(Undigested(30), LastMessages(20), Chunk(20), Recalled(3)),),
    "trim": (Stage(Turns(20), LastTurns(8), Drop()),),
    "summarize": (Stage(Turns(20), LastTurns(5), Summarize(), ShadowTurn()),),
    "redact": (Stage(Turns(9), LastTurns(3), Redact()),),
    "native": (Stage(Fraction(0.75), LastMessages(4), Compact()),),
    "rolling": (Stage(Messages(40), LastMessages(12), Summarize(), SystemMessage()),),
}


def test_the_designs_table() -> None:
    assert {name: make().stages for name, make in PRESETS.items()} == TABLE
    assert [make().name for make in PRESETS.values()] == list(TABLE), "in the table's order, by their own names"


@pytest.mark.parametrize("name", ["sliding_window", "token_threshold", "chunks", "summarize", "rolling"])
def test_facts_come_with_a_digest_where_they_are_asked_for(name: str) -> None:
    """Unasked, with chunks alone, as in seed 002."""
    for policy, facts in (
        (PRESETS[name](), name == "chunks"),
        (PRESETS[name](facts=True), True),
        (parse(f"{name}:facts=false"), False),
    ):
        stage = policy.stages[-1]
        assert isinstance(stage.action, Chunk | Summarize)
        assert stage.action.facts is facts
        assert Policy.from_json(policy.to_json()) == policy


def test_balanced_finds_facts_by_a_stage_of_its_own() -> None:
    assert PRESETS["balanced"](facts=False).stages == TABLE["balanced"][:2] == parse("balanced:facts=false").stages


def test_every_preset_runs_by_its_name_alone() -> None:
    for name, make in PRESETS.items():
        assert parse(name) == parse(f" {name}: ") == make()


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("none", none()),
        ("sliding_window:window=20, after_seq=7", sliding_window(20, 7)),
        ("trim:max_turns=12,keep_turns=4", trim(12, 4)),
        (" trim : max_turns = 12 , keep_turns = 4 , ", trim(12, 4)),
        ("redact:calls=true,at_least=500", redact(calls=True, at_least=500)),
        ("redact:calls=false", redact()),
        ("native:fraction=0.8", native(0.8)),
        ("native:fraction=1", native(1)),
        ("token_threshold:archive=true", token_threshold(archive=True)),
        ("rolling:max_tokens=300", rolling(max_tokens=300)),
        ("rolling:facts=true", rolling(facts=True)),
        ("chunks:facts=false", chunks(facts=False)),
    ],
)
def test_the_command_line_form(text: str, policy: Policy) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no policy named ''; known: balanced, none, sliding_window"),
        ("slide", "no policy named 'slide'"),
        ("trim trim", "no policy named"),
        (":max_turns=3", "no policy named ''"),
        ("sliding_window:size=3", "no parameter 'size'; it has: window, after_seq, max_tokens"),
        ("sliding_window:window", "'window' in policy .* is not parameter=value"),
        ("sliding_window:window=x", "'window=x'"),
        ("sliding_window:window=", "'window='"),
        ("sliding_window:window=-3", "Window.n is -3"),
        ("sliding_window:window=1e3", "'window=1e3'"),
        ("sliding_window:window=1_000", "'window=1_000'"),
        ("sliding_window:window=٣", "'window=٣'"),
        ("sliding_window:window=3=4", "'window=3=4'"),
        ("sliding_window:window=0", r"Window\.n is 0"),
        ("sliding_window:window=1.5", r"Window\.n is 1\.5"),
        ("sliding_window:window=true", r"Window\.n is True"),
        ("sliding_window:window=9" + "9" * 30, "window=9"),
        ("none:n=1", "no parameter 'n'; it has: none"),
        ("trim:max_turns=3,keep_turns=3", "never act"),
        ("redact:calls=1", r"Redact\.calls is 1"),
        ("chunks:facts=1", r"Chunk\.facts is 1"),
        ("redact:facts=true", "no parameter 'facts'"),
        ("redact:trigger_turns=0", "trigger_turns is 0"),
        ("native:fraction=0", r"Fraction\.f is 0"),
        ("native:fraction=true", r"Fraction\.f is True"),
        ("native:fraction=nan", "'fraction=nan'"),
        ("native:fraction=75%", "'fraction=75%'"),
        ("sliding-window", "no policy named 'sliding-window'; known: .*sliding_window"),
        ("rolling:summaryEnabled=true", "summaryEnabled"),
        ("rolling:summaryThreshold=9", "no parameter 'summaryThreshold'"),
        ("chunks:batch=31", "batch at most 30"),
        ("balanced:recall=own", "'recall=own'.*the setting recall and the argument recall"),
        ("balanced:recall=true", "'recall=true'.*the setting recall and the argument recall"),
    ],
)
def test_unusable_forms_are_named(text: str, named: str) -> None:
    with pytest.raises(InvalidPolicy, match=named):
        parse(text)


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="twice"):
        parse("trim:max_turns=12,max_turns=9")


def test_a_parameter_given_twice_in_code_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="given 'max_turns' twice"):
        cast(Any, trim)(12, max_turns=12)
    assert trim(12, keep_turns=3) == trim(12, 3)


_pieces = st.sampled_from([*PRESETS, "threshold", "keep_turns", *":=,. -_\x00\ud800☃"])
_forms = st.one_of(
    st.text(max_size=40), st.lists(st.one_of(_pieces, st.text(max_size=4), st.integers().map(str))).map("".join)
)


@given(_forms)
def test_any_text_is_a_policy_or_an_invalid_one(text: str) -> None:
    try:
        found = parse(text)
    except InvalidPolicy:
        return
    assert found.name in PRESETS


@given(st.sampled_from(sorted(PRESETS)), st.lists(st.tuples(_pieces, _forms), max_size=3))
def test_any_parameters_are_a_policy_or_an_invalid_one(name: str, pairs: list[tuple[str, str]]) -> None:
    text = name + ":" + ",".join(f"{key}={value}" for key, value in pairs)
    try:
        found = parse(text)
    except InvalidPolicy:
        return
    assert found.name == name


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: trim(max_turns=1, keep_turns=5),
            r"trim\(max_turns=1, keep_turns=5\): .* could never act; wait for more$",
        ),
        (lambda: trim(6, 6), r"trim\(6, 6\): .*; wait for more, or keep at most 5$"),
        (lambda: summarize(keep_turns=0), r"summarize\(keep_turns=0\): LastTurns.k is 0"),
        (lambda: parse("chunks:batch=50"), r"chunks\(batch=50\): .* make the batch at most 30"),
    ],
)
def test_what_is_refused_is_told_in_the_presets_own_words(make: Callable[[], Policy], says: str) -> None:
    with pytest.raises(InvalidPolicy, match=f"^{says}"):
        make()
