"""Policies as JSON: what is written is read back equal, and whatever else comes is refused with the field's name."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.policy.policy import VERSION
from hitherto.core.policy.presets import policy_of
from hitherto.errors import InvalidPolicy
from hitherto.policies import (
    PRESETS,
    AllOf,
    AnyOf,
    Chunk,
    Compact,
    Drop,
    Fraction,
    LastMessages,
    LastTokens,
    LastTurns,
    Messages,
    Nothing,
    Policy,
    Prefix,
    Recalled,
    Redact,
    Seq,
    ShadowTurn,
    Stage,
    Summarize,
    SystemMessage,
    Tokens,
    Turns,
    Undigested,
    Window,
    sliding_window,
)
from tests.core.policy.policies import policies

EVERYTHING = Policy(
    "everything",
    (
        Stage(
            AnyOf((Messages(9), AllOf((Turns(4), Tokens(50), AnyOf((Seq(0), Undigested(9))))), Fraction(0.5))),
            LastTurns(2),
            Redact(calls=True, never=("look", "päge"), at_least=7),
        ),
        Stage(Seq(9), Window(40, LastMessages(3)), Summarize(200, archive=True), Prefix("<{text}>\n")),
        Stage(Turns(8), Nothing(), Summarize(), ShadowTurn("And?", "So: {text}")),
        Stage(Tokens(90), LastTokens(80), Summarize(), SystemMessage("Before:\n{text}")),
        Stage(Undigested(9), LastMessages(3), Chunk(4, 50), Recalled(2)),
        Stage(Fraction(0.75), LastMessages(3), Compact()),
        Stage(Turns(30), LastTurns(2), Drop()),
    ),
)


@given(policies())
def test_there_and_back(policy: Policy) -> None:
    assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy


def test_every_part_goes_there_and_back() -> None:
    assert Policy.from_json(json.loads(json.dumps(EVERYTHING.to_json()))) == EVERYTHING


def test_the_documented_form() -> None:
    stage = Stage(AnyOf((Turns(8), Fraction(0.5))), Window(9, LastTurns(3)), Summarize(300), Prefix("{text} "))
    assert Policy("mine", (stage,)).to_json() == {
        "version": 1,
        "name": "mine",
        "stages": [
            {
                "trigger": {"is": "any_of", "of": [{"is": "turns", "n": 8}, {"is": "fraction", "f": 0.5}]},
                "keep": {"is": "window", "n": 9, "keep": {"is": "last_turns", "k": 3}},
                "action": {"is": "summarize", "max_tokens": 300, "archive": False},
                "render": {"is": "prefix", "template": "{text} "},
            }
        ],
    }


def test_parameters_with_defaults_can_be_left_out() -> None:
    short = {
        "version": 1,
        "name": "redact",
        "stages": [
            {
                "trigger": {"is": "turns", "n": 9},
                "keep": {"is": "last_turns", "k": 3},
                "action": {"is": "redact"},
            }
        ],
    }
    assert Policy.from_json(short) == PRESETS["redact"]()


@pytest.mark.parametrize(
    ("usual", "other", "written"),
    [
        (Chunk(4, 50), Chunk(4, 50, facts=False), {"is": "chunk", "batch": 4, "max_tokens": 50}),
        (Summarize(90), Summarize(90, facts=True), {"is": "summarize", "max_tokens": 90, "archive": False}),
    ],
)
def test_a_parameter_that_came_later_changes_no_policy_without_it(
    usual: Chunk | Summarize, other: Chunk | Summarize, written: dict[str, Any]
) -> None:
    """Rows name their stage by the fingerprint of this JSON, and so do those that were written before."""
    default = usual.facts
    assert usual.to_json() == written
    assert other.to_json() == {**written, "facts": not default}
    assert str(usual).endswith(("max_tokens=50)", "archive=False)"))
    assert str(other).endswith(f", facts={not default})")
    of_usual, of_other = (Stage(Undigested(9), LastMessages(3), action) for action in (usual, other))
    assert of_usual.fingerprint != of_other.fingerprint
    for stage in (of_usual, of_other):
        assert Stage.from_json(json.loads(json.dumps(stage.to_json()))) == stage
    said = {**of_usual.to_json(), "action": {**written, "facts": default}}
    assert Stage.from_json(said) == of_usual
    for value in (None, 0, 1, "yes", []):
        with pytest.raises(InvalidPolicy, match=r"stage\.action: \w+\.facts is .*; give true or false"):
            Stage.from_json({**said, "action": {**written, "facts": value}})


def test_the_fingerprints_of_stages_before_there_were_facts() -> None:
    assert {name: [stage.fingerprint for stage in PRESETS[name]().stages] for name in FINGERPRINTS} == FINGERPRINTS


FINGERPRINTS = {
    "sliding_window": ["817f0560805d8bff"],
    "token_threshold": ["a5ab268c3c311aaf"],
    "chunks": ["5d7215a7f35c1abc"],
    "summarize": ["073f7bb677080945"],
    "rolling": ["9fc42fa57dfbf61f"],
}


def _changed(path: list[Any], value: Any, whole: Any) -> Any:
    at = whole
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return whole


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (["version"], 2, r"policy\.version is 2"),
        (["version"], "1", r"policy\.version is '1'"),
        (["version"], True, r"policy\.version is True"),
        (["version"], ..., r"policy\.version is None"),
        (["name"], "", "name is ''"),
        (["name"], 7, "name is 7"),
        (["name"], ..., "name is None"),
        (["extra"], 1, r"policy\.extra"),
        (["stages"], {}, r"policy\.stages is \{\}"),
        (["stages"], ..., r"policy\.stages is None"),
        (["stages", 0], 3, r"policy\.stages\[0\] is 3"),
        (["stages", 2, "then"], 3, r"policy\.stages\[2\]\.then"),
        (["stages", 0, "trigger"], ..., r"policy\.stages\[0\]\.trigger is None"),
        (["stages", 0, "trigger", "is"], "moon", r"policy\.stages\[0\]\.trigger\.is is 'moon'; known: all_of, any_of"),
        (["stages", 0, "trigger", "is"], "last_turns", r"policy\.stages\[0\]\.trigger\.is is 'last_turns'"),
        (["stages", 0, "trigger", "is"], ["turns"], r"policy\.stages\[0\]\.trigger\.is"),
        (["stages", 0, "trigger", "of"], [], r"policy\.stages\[0\]\.trigger: AnyOf\.of"),
        (["stages", 0, "trigger", "of"], {"is": "turns", "n": 4}, r"policy\.stages\[0\]\.trigger: AnyOf\.of"),
        (["stages", 0, "trigger", "of", 1, "of", 0, "n"], 0, r"stages\[0\]\.trigger\.of\[1\]\.of\[0\]: Turns\.n is 0"),
        (["stages", 0, "trigger", "of", 1, "of", 2, "of", 1], 5, r"stages\[0\]\.trigger\.of\[1\]\.of\[2\]\.of\[1\]"),
        (["stages", 0, "action", "never"], "look", r"policy\.stages\[0\]\.action: Redact\.never"),
        (["stages", 0, "action", "never"], [["look"]], r"policy\.stages\[0\]\.action: Redact\.never"),
        (["stages", 0, "action", "calls"], 1, r"policy\.stages\[0\]\.action: Redact\.calls"),
        (["stages", 0, "render"], {"is": "prefix"}, r"policy\.stages\[0\]: .*cannot be shown"),
        (["stages", 1, "trigger", "n"], ..., r"policy\.stages\[1\]\.trigger lacks the parameter 'n' of 'seq'"),
        (["stages", 1, "trigger", "n"], -1, r"policy\.stages\[1\]\.trigger: Seq\.n is -1"),
        (["stages", 1, "trigger", "n"], None, r"policy\.stages\[1\]\.trigger: Seq\.n is None"),
        (["stages", 1, "trigger", "n"], False, r"policy\.stages\[1\]\.trigger: Seq\.n is False"),
        (["stages", 1, "keep", "n"], "14", r"policy\.stages\[1\]\.keep: Window\.n is '14'"),
        (["stages", 1, "keep", "m"], 1, r"policy\.stages\[1\]\.keep\.m"),
        (["stages", 1, "keep", "keep"], None, r"policy\.stages\[1\]\.keep\.keep is None"),
        (["stages", 1, "keep", "keep", "k"], 99, r"policy\.stages\[1\]\.keep: Window\.n is 40"),
        (["stages", 1, "keep", "keep"], [{"is": "nothing"}], r"policy\.stages\[1\]\.keep.*keep"),
        (["stages", 1, "action", "max_tokens"], 0, r"policy\.stages\[1\]\.action: Summarize\.max_tokens"),
        (["stages", 1, "render", "template"], "no place", r"policy\.stages\[1\]\.render: Prefix\.template"),
        (["stages", 4, "trigger", "n"], 3, r"policy\.stages\[4\]: .*make the batch at most 3"),
        (["stages", 5, "trigger", "f"], math.nan, r"policy\.stages\[5\]\.trigger: Fraction\.f is nan"),
        (["stages", 5, "trigger", "f"], math.inf, r"policy\.stages\[5\]\.trigger: Fraction\.f is inf"),
        (["stages", 5, "trigger", "f"], 10**400, r"policy\.stages\[5\]\.trigger: Fraction\.f"),
        (["stages", 6, "keep", "k"], 30, r"policy\.stages\[6\]: LastTurns\(k=30\) keeps all"),
    ],
)
def test_unusable_json_names_its_field(path: list[Any], value: Any, named: str) -> None:
    with pytest.raises(InvalidPolicy, match=named):
        Policy.from_json(_changed(path, value, EVERYTHING.to_json()))


# hostile JSON


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**100, -(10**100), 2**63, 0, -1]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["turns", "last_turns", "drop", "prefix", "window", "any_of", "is", "\x00", "\ud800", "{text}"]),
)
_keys = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["version", "name", "stages", "trigger", "keep", "action", "render", "is", "n", "k", "of", "never", "word"]
    ),
)
anything = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_keys, inner, max_size=5)),
    max_leaves=20,
)


def _read(value: object) -> Policy | None:
    try:
        return Policy.from_json(value)
    except InvalidPolicy:
        return None


@given(anything)
def test_any_json_is_a_policy_or_an_invalid_one(value: object) -> None:
    found = _read(value)
    assert found is None or Policy.from_json(found.to_json()) == found


@given(anything)
def test_any_stage_is_one_or_an_invalid_one(stage: object) -> None:
    assert (found := _read({"version": VERSION, "name": "x", "stages": [stage]})) is None or len(found.stages) == 1


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [(*here, key) for key, _ in inner] + [
        place for key, one in inner for place in _places(one, (*here, key))
    ]  # fmt: skip


@given(st.data(), policies(), anything)
def test_a_policys_json_with_garbage_in_one_place(data: st.DataObject, policy: Policy, garbage: object) -> None:
    """Either it is refused, or it is a policy like any other: it prints, and goes to JSON and back."""
    whole = policy.to_json()
    place = data.draw(st.sampled_from(_places(whole)))
    found = _read(_changed(list(place), garbage, whole))
    if found is not None:
        assert Policy.from_json(json.loads(json.dumps(found.to_json()))) == found
        assert str(found)
        assert repr(found)


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_that_python_does_not_print(sign: int) -> None:
    whole = _changed(["stages", 0, "trigger", "n"], sign * 10**5_000, sliding_window().to_json())
    with pytest.raises(InvalidPolicy, match=r"Seq\.n"):
        Policy.from_json(whole)


def test_triggers_nested_without_end() -> None:
    trigger: Any = {"is": "turns", "n": 5}
    for _ in range(400):
        trigger = {"is": "any_of", "of": [trigger]}
    with pytest.raises(InvalidPolicy, match="policy"):
        Policy.from_json(_changed(["stages", 0, "trigger"], trigger, sliding_window().to_json()))


def test_lists_nested_without_end() -> None:
    names: Any = []
    for _ in range(900):
        names = [names]
    whole = PRESETS["redact"]().to_json()
    with pytest.raises(InvalidPolicy, match="never"):
        Policy.from_json(_changed(["stages", 0, "action", "never"], names, whole))


# whatever a caller gives for a policy


def test_a_policy_its_name_its_form_or_its_json() -> None:
    policy = PRESETS["trim"](max_turns=9, keep_turns=4)
    for given_ in (policy, "trim:max_turns=9,keep_turns=4", policy.to_json()):
        assert policy_of(given_) == policy
    assert policy_of(None) is None


@pytest.mark.parametrize("given_", [0, 3, [], [EVERYTHING], b"trim", object(), True, EVERYTHING.stages[0]])
def test_anything_else_is_refused(given_: object) -> None:
    with pytest.raises(InvalidPolicy, match="give a policy such as"):
        policy_of(given_)
