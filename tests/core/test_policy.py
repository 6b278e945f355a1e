"""Policies as values: JSON, command line, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto.core.policy import Nothing, Policy, Prefix, Seq, Stage, Summarise, SystemMessage, Window
from hitherto.core.presets import none, parse, sliding_window
from hitherto.errors import InvalidPolicy


def test_the_command_line_form() -> None:
    assert parse("none") == none()
    assert parse("sliding-window") == parse("sliding_window") == sliding_window()
    assert parse("sliding-window:window=20, after-seq=7") == sliding_window(window=20, after_seq=7)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("slide", "slide"),
        ("sliding-window:size=3", "size"),
        ("sliding-window:window", "window"),
        ("sliding-window:window=x", "window=x"),
        ("sliding-window:window=0", "Window.n"),
        ("none:n=1", "n"),
        ("", "''"),
    ],
)
def test_unusable_forms_are_named(text: str, named: str) -> None:
    with pytest.raises(InvalidPolicy, match=named):
        parse(text)


def changed(path: list[Any], value: Any) -> Any:
    whole: Any = sliding_window().to_json()
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
        (["version"], 2, "policy.version"),
        (["name"], "", "name"),
        (["name"], 7, "name"),
        (["extra"], 1, "policy.extra"),
        (["stages"], {}, "policy.stages"),
        (["stages", 0], 3, r"policy.stages\[0\]"),
        (["stages", 0, "trigger"], ..., r"policy.stages\[0\].trigger"),
        (["stages", 0, "trigger", "is"], "moon", r"policy.stages\[0\].trigger.is"),
        (["stages", 0, "trigger", "n"], ..., r"policy.stages\[0\].trigger"),
        (["stages", 0, "trigger", "n"], -1, "Seq.n"),
        (["stages", 0, "keep", "n"], "14", "Window.n"),
        (["stages", 0, "keep", "m"], 1, r"policy.stages\[0\].keep.m"),
        (["stages", 0, "action", "limit"], 0, "Summarise.limit"),
        (["stages", 0, "render", "template"], "no place", "Prefix.template"),
    ],
)
def test_unusable_json_names_its_field(path: list[Any], value: Any, named: str) -> None:
    with pytest.raises(InvalidPolicy, match=named):
        Policy.from_json(changed(path, value))


def test_the_same_stage_twice_is_refused() -> None:
    stage = sliding_window().stages[0]
    with pytest.raises(InvalidPolicy, match="twice"):
        Policy("mine", (stage, stage))


def test_a_stage_of_ones_own_goes_to_json_and_back() -> None:
    stage = Stage(Seq(0), Nothing(), Summarise(200), SystemMessage("Before: {text}"))
    policy = Policy("mine", (stage, Stage(Seq(9), Window(4), Summarise(), Prefix())))
    assert Policy.from_json(policy.to_json()) == policy
    assert str(policy).startswith("mine: when Seq(n=0) keep Nothing()")
    assert stage.fingerprint != policy.stages[1].fingerprint
