"""Policies as values: comparable, hashable, printable, frozen; and what cannot be put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from hitherto.core.log.frontier import DigestAction
from hitherto.errors import InvalidPolicy
from hitherto.policies import (
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
    none,
    sliding_window,
    trim,
)
from tests.core.policy.policies import policies


def untyped(value: object) -> Any:
    """What a caller without a type checker passes."""
    return value


# values


@given(policies())
def test_equal_policies_are_one_value(policy: Policy) -> None:
    again = Policy.from_json(policy.to_json())
    assert again == policy
    assert hash(again) == hash(policy)
    assert str(again) == str(policy)
    assert repr(again) == repr(policy)
    assert [one.fingerprint for one in again.stages] == [one.fingerprint for one in policy.stages]


def test_policies_that_differ_are_unequal() -> None:
    assert trim(max_turns=12) != trim(max_turns=13)
    assert len({trim(12, 4), trim(12, 4), trim(12, 3), none()}) == 3
    assert Turns(5) != Messages(5), "two triggers of the same shape"
    assert LastTurns(4) != LastMessages(4)
    one, other = Stage(Turns(5), LastTurns(2), Drop()), Stage(Turns(5), LastTurns(2), Redact())
    assert Policy("x", (one, other)) != Policy("x", (other, one)), "the order of stages counts"
    assert Policy("x") != Policy("y")


def test_equal_stages_have_the_same_fingerprint() -> None:
    """It is the name under which a stage's rows are found again."""
    assert Fraction(1) == Fraction(1.0)
    one, other = (Stage(Fraction(share), LastTurns(2), Drop()) for share in (1, 1.0))
    assert one == other
    assert one.fingerprint == other.fingerprint


def test_a_policy_cannot_be_changed() -> None:
    policy = trim()
    for thing, field in ((policy, "name"), (policy.stages[0], "keep"), (policy.stages[0].trigger, "n")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field, None)


def test_the_json_is_no_alias() -> None:
    policy = sliding_window()
    policy.to_json()["stages"][0]["trigger"]["n"] = 99
    assert policy == sliding_window()


def test_a_policy_prints_as_what_it_is() -> None:
    policy = Policy(
        "mine",
        (
            Stage(AnyOf((Turns(8), AllOf((Tokens(500), Seq(3))))), LastTurns(3), Redact(never=("read", "write"))),
            Stage(Messages(40), LastMessages(12), Summarize(200), ShadowTurn()),
        ),
    )
    assert str(policy) == (
        "mine: when AnyOf(of=(Turns(n=8), AllOf(of=(Tokens(n=500), Seq(n=3))))) keep LastTurns(k=3): "
        "Redact(calls=False, never=('read', 'write'), at_least=0); "
        "when Messages(n=40) keep LastMessages(k=12): Summarize(max_tokens=200, archive=False) "
        "as ShadowTurn(user='What have we talked about so far?', template='{text}')"
    )
    assert str(none()) == "none: everything stays"


def test_a_repr_is_the_code_that_makes_it() -> None:
    stage = Stage(AnyOf((Turns(8), Fraction(0.5))), Window(9, LastTurns(3)), Summarize(), Prefix())
    policy = Policy("mine", (stage,))
    assert eval(repr(policy)) == policy


def test_doing_finds_stages_by_what_they_do() -> None:
    redact, summarize, drop = (
        Stage(Turns(4), LastTurns(2), Redact()),
        Stage(Turns(8), LastTurns(2), Summarize()),
        Stage(Turns(16), LastTurns(2), Drop()),
    )
    policy = Policy("mine", (redact, summarize, drop))
    assert policy.doing(DigestAction.REDACT, DigestAction.DROP) == (redact, drop)
    assert policy.doing(DigestAction.COMPACT) == ()


def test_a_stage_without_a_render_gets_the_one_that_fits() -> None:
    assert Stage(Turns(5), LastTurns(2), Summarize()).render == SystemMessage()
    assert Stage(Undigested(5), LastMessages(2), Chunk(3)).render == Recalled()
    for action in (Drop(), Redact(), Compact()):
        assert Stage(Turns(5), LastTurns(2), action).render is None


# what is refused


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Turns(0), r"Turns\.n is 0"),
        (lambda: Messages(untyped(True)), r"Messages\.n is True"),
        (lambda: Tokens(untyped(1.5)), r"Tokens\.n is 1\.5"),
        (lambda: Seq(-1), r"Seq\.n is -1"),
        (lambda: Undigested(untyped("30")), r"Undigested\.n is '30'"),
        (lambda: Fraction(0), r"Fraction\.f is 0"),
        (lambda: Fraction(1.01), r"Fraction\.f is 1\.01"),
        (lambda: Fraction(float("nan")), r"Fraction\.f is nan"),
        (lambda: Fraction(untyped(True)), r"Fraction\.f is True"),
        (lambda: Fraction(untyped("0.75")), r"Fraction\.f is '0\.75'"),
        (lambda: AnyOf(()), r"AnyOf\.of is \(\).*never fire"),
        (lambda: AllOf(()), r"AllOf\.of is \(\).*never fire"),
        (lambda: AnyOf(untyped("turns")), r"AnyOf\.of"),
        (lambda: AnyOf(untyped((Turns(3), "turns"))), r"AnyOf\.of has 'turns'"),
        (lambda: AllOf(untyped((LastTurns(3),))), r"AllOf\.of has LastTurns"),
        (lambda: LastTurns(0), r"LastTurns\.k is 0"),
        (lambda: LastMessages(untyped(None)), r"LastMessages\.k is None"),
        (lambda: LastTokens(-5), r"LastTokens\.t is -5"),
        (lambda: Window(0), r"Window\.n is 0"),
        (lambda: Redact(calls=untyped(1)), r"Redact\.calls is 1"),
        (lambda: Redact(never=untyped("search")), r"Redact\.never is 'search'"),
        (lambda: Redact(never=("",)), r"Redact\.never is \(''"),
        (lambda: Redact(at_least=-1), r"Redact\.at_least is -1"),
        (lambda: Summarize(0), r"Summarize\.max_tokens is 0"),
        (lambda: Summarize(archive=untyped("no")), r"Summarize\.archive is 'no'"),
        (lambda: Chunk(0), r"Chunk\.batch is 0"),
        (lambda: Chunk(max_tokens=0), r"Chunk\.max_tokens is 0"),
        (lambda: SystemMessage("no place"), r"SystemMessage\.template"),
        (lambda: Prefix("{text}{text}"), r"Prefix\.template"),
        (lambda: ShadowTurn(template=untyped(7)), r"ShadowTurn\.template is 7"),
        (lambda: ShadowTurn("  "), r"ShadowTurn\.user"),
        (lambda: Recalled(0), r"Recalled\.top_k is 0"),
    ],
)
def test_unusable_parameters_are_named(make: Callable[[], object], named: str) -> None:
    with pytest.raises(InvalidPolicy, match=named):
        make()


@pytest.mark.parametrize(
    ("trigger", "keep", "most"),
    [
        (Turns(4), LastTurns(4), 3),
        (Turns(4), LastTurns(9), 3),
        (Messages(10), LastMessages(11), 10),
        (Undigested(10), LastMessages(11), 10),
        (Tokens(100), LastTokens(101), 100),
        (AnyOf((Tokens(9), Turns(4))), LastTurns(4), 3),
    ],
)
def test_a_stage_that_keeps_more_than_its_trigger_is_refused(trigger: Any, keep: Any, most: int) -> None:
    with pytest.raises(InvalidPolicy, match=f"never act; wait for more, or keep at most {most}$"):
        Stage(trigger, keep, Summarize())
    with pytest.raises(InvalidPolicy, match=f"never act; wait for more, or keep at most {most}$"):
        Stage(trigger, Window(50, keep), Summarize())


@pytest.mark.parametrize("action", [Drop(), Redact(), Compact()])
@pytest.mark.parametrize("trigger", [Undigested(10), AnyOf((Turns(9), Undigested(10)))])
def test_what_makes_no_digest_does_not_wait_for_undigested_messages(trigger: Any, action: Any) -> None:
    """They stay undigested, so it would fire at every append."""
    with pytest.raises(InvalidPolicy, match="makes no digest"):
        Stage(trigger, LastTurns(2), action)


def test_the_most_a_stage_may_keep() -> None:
    Stage(Turns(4), LastTurns(3), Drop())
    Stage(Messages(10), LastMessages(10), Drop())
    Stage(Tokens(100), LastTokens(100), Drop())


def test_a_stage_that_waits_for_all_of_several_triggers_may_keep_what_one_of_them_waits_for() -> None:
    """It is due at 10 turns, and keeps 5 of them."""
    Stage(AllOf((Turns(3), Turns(10))), LastTurns(5), Drop())


@pytest.mark.parametrize("keep", [LastMessages(14), LastTurns(14), LastTurns(20)])
def test_a_window_smaller_than_its_keep_is_refused(keep: Any) -> None:
    with pytest.raises(InvalidPolicy, match=r"Window\.n is 14.*larger"):
        Window(14, keep)


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    """Four turns are eight messages: a window of five never holds anything beside them, so nothing is ever digested."""
    with pytest.raises(InvalidPolicy, match=r"Window\.n is 5"):
        Window(5, LastTurns(4))


@pytest.mark.parametrize("keep", [Window(3), "nothing", None, (Nothing(),), Turns(3)])
def test_a_windows_keep_is_a_plain_keep(keep: Any) -> None:
    with pytest.raises(InvalidPolicy, match=r"Window\.keep"):
        Window(14, keep)


@pytest.mark.parametrize("action", [Drop(), Redact(), Chunk(5), Compact()])
def test_only_a_summary_has_a_window(action: Any) -> None:
    with pytest.raises(InvalidPolicy, match="Summarize"):
        Stage(Seq(5), Window(14), action)


@pytest.mark.parametrize(
    ("action", "render"),
    [
        (Drop(), SystemMessage()),
        (Redact(), Prefix()),
        (Compact(), ShadowTurn()),
        (Summarize(), Recalled()),
        (Chunk(3), SystemMessage()),
    ],
)
def test_a_render_that_does_not_fit_is_refused(action: Any, render: Any) -> None:
    with pytest.raises(InvalidPolicy, match=r"cannot be shown as"):
        Stage(Undigested(5), LastMessages(2), action, render)


def test_a_batch_that_never_fills_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match=r"batch at most 30"):
        Stage(Undigested(30), LastMessages(20), Chunk(batch=31))
    Stage(Undigested(30), LastMessages(20), Chunk(batch=30))


def test_chunks_may_show_more_than_they_wait_for() -> None:
    """A chunk is taken of the oldest messages whatever is kept in view: what is kept is shown beside its chunk."""
    Stage(Undigested(10), LastMessages(20), Chunk(batch=10))


@pytest.mark.parametrize(
    ("given_", "slot"),
    [
        ({"trigger": LastTurns(2)}, "trigger"),
        ({"trigger": None}, "trigger"),
        ({"keep": "all"}, "keep"),
        ({"action": Drop}, "action"),
        ({"action": Summarize(), "render": "system_message"}, "render"),
    ],
)
def test_parts_in_the_wrong_place_are_refused(given_: dict[str, Any], slot: str) -> None:
    parts: dict[str, Any] = {"trigger": Turns(5), "keep": LastTurns(2), "action": Drop(), "render": None, **given_}
    with pytest.raises(InvalidPolicy, match=f"a stage's {slot} is"):
        Stage(**parts)


@pytest.mark.parametrize("name", ["", "  ", None, 7])
def test_a_policy_has_a_name(name: Any) -> None:
    with pytest.raises(InvalidPolicy, match="name"):
        Policy(name)


@pytest.mark.parametrize("stages", [[], None, (1,), "x", (Turns(5),)])
def test_stages_are_a_tuple_of_stages(stages: Any) -> None:
    with pytest.raises(InvalidPolicy, match="stages"):
        Policy("mine", stages)


def test_the_same_stage_twice_is_refused() -> None:
    stage = sliding_window().stages[0]
    with pytest.raises(InvalidPolicy, match="twice"):
        Policy("mine", (stage, stage))
