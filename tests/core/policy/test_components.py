"""Parts of somebody else's: registered under a word of their own, read from JSON like ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.component import _KNOWN, Component
from hitherto.errors import InvalidPolicy
from hitherto.policies import (
    Action,
    AllOf,
    Drop,
    Keep,
    LastTurns,
    Policy,
    Redact,
    Seq,
    Stage,
    Summarize,
    Trigger,
    TriggerInput,
    Turns,
    register,
)


@contextmanager
def known_parts_restored() -> Generator[None]:
    """So that a part of one test is not known to the next."""
    before = {slot: dict(words) for slot, words in _KNOWN.items()}
    try:
        yield
    finally:
        for slot, words in before.items():
            _KNOWN[slot].clear()
            _KNOWN[slot].update(words)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] (pytest uses it)
    with known_parts_restored():
        yield


@dataclass(frozen=True)
class LongTurns(Trigger):
    """Due when the turns in view are `tokens` long on average."""

    tokens: int
    word: ClassVar[str] = "acme.long_turns"

    def due(self, seen: TriggerInput) -> bool:
        return seen.turns > 0 and seen.tokens >= self.tokens * seen.turns


@dataclass(frozen=True)
class Not(Trigger):
    """A trigger that holds another."""

    one: Trigger = field(metadata={"slot": "trigger"})
    word: ClassVar[str] = "acme.not"

    def due(self, seen: TriggerInput) -> bool:
        return not self.one.due(seen)


@dataclass(frozen=True)
class Shorten(Redact):
    """Shows the beginning of a result."""

    characters: int = 20
    word: ClassVar[str] = "acme.shorten"

    def replacement(self, tool: str, text: str) -> str | None:
        return text[: self.characters]


def test_a_trigger_and_an_action_of_ones_own_go_to_json_and_back() -> None:
    for kind in (LongTurns, Not, Shorten):
        assert register(kind) is kind
    policy = Policy(
        "mine", (Stage(AllOf((LongTurns(500), Not(Seq(4)))), LastTurns(2), Shorten(never=("look",), characters=9)),)
    )
    written = json.loads(json.dumps(policy.to_json()))
    assert written["stages"][0]["trigger"]["of"] == [
        {"is": "acme.long_turns", "tokens": 500},
        {"is": "acme.not", "one": {"is": "seq", "n": 4}},
    ]
    assert written["stages"][0]["action"] == {
        "is": "acme.shorten",
        "calls": False,
        "never": ["look"],
        "at_least": 0,
        "characters": 9,
    }
    assert Policy.from_json(written) == policy
    assert policy.stages[0].action.digest_action is DigestAction.REDACT
    assert policy.stages[0].action.at_once
    assert str(policy).startswith("mine: when AllOf(of=(LongTurns(tokens=500), Not(one=Seq(n=4)))) keep")


@dataclass(frozen=True)
class Busy(Trigger):
    """A part that was in use before it had its last parameters."""

    n: int
    least: int = field(default=1, metadata={"later": True})
    also: tuple[str, ...] = field(default=(), metadata={"later": True})
    word: ClassVar[str] = "acme.busy"

    def due(self, seen: TriggerInput) -> bool:
        return seen.turns > max(self.n, self.least)


@pytest.mark.parametrize(
    ("part", "written", "printed"),
    [
        (Busy(3), {"n": 3}, "Busy(n=3)"),
        (Busy(3, 1, ()), {"n": 3}, "Busy(n=3)"),
        (Busy(3, 2), {"n": 3, "least": 2}, "Busy(n=3, least=2)"),
        (Busy(3, also=("a",)), {"n": 3, "also": ["a"]}, "Busy(n=3, also=('a'))"),
    ],
)
def test_a_parameter_that_came_later_is_written_only_where_it_says_something(
    part: Busy, written: dict[str, Any], printed: str
) -> None:
    register(Busy)
    assert part.to_json() == {"is": "acme.busy", **written}
    assert str(part) == printed
    stage = Stage(part, LastTurns(2), Drop())
    assert Stage.from_json(stage.to_json()) == stage


def test_true_is_not_the_default_1() -> None:
    """They are equal to Python, but not as JSON."""
    register(Busy)
    assert Busy(3, True).to_json() == {"is": "acme.busy", "n": 3, "least": True}


def test_a_word_that_is_taken_is_refused() -> None:
    @dataclass(frozen=True)
    class Mine(Trigger):
        word: ClassVar[str] = "turns"

    with pytest.raises(InvalidPolicy, match="the trigger 'turns' is Turns already; choose another word"):
        register(Mine)
    assert isinstance(Policy.from_json(Policy("x", (Stage(Turns(5), LastTurns(2), Drop()),)).to_json()), Policy)


def test_two_of_ones_own_cannot_share_a_word() -> None:
    def made() -> type[Component]:
        @dataclass(frozen=True)
        class One(Trigger):
            word: ClassVar[str] = "acme.one"

        return One

    @dataclass(frozen=True)
    class Other(Trigger):
        word: ClassVar[str] = "acme.one"

    first = made()
    register(first)
    register(made())  # the same module loaded again
    with pytest.raises(InvalidPolicy, match=r"'acme\.one' is .*One already"):
        register(Other)


def test_words_are_one_name_space_a_slot() -> None:
    @dataclass(frozen=True)
    class TurnsAction(Drop):
        word: ClassVar[str] = "turns"

    register(TurnsAction)
    stage = Stage(Turns(5), LastTurns(2), TurnsAction())
    assert Stage.from_json(stage.to_json()) == stage


def test_a_slot_that_there_is_not_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd(Component):
        word: ClassVar[str] = "odd"
        slot: ClassVar[str] = "extras"

    with pytest.raises(InvalidPolicy, match=r"Odd\.slot is 'extras'; it must be one of trigger, keep, action, render"):
        register(Odd)


def test_what_is_not_registered_cannot_be_read() -> None:
    policy = {
        "version": 1,
        "name": "mine",
        "stages": [
            {
                "trigger": {"is": "acme.long_turns", "tokens": 5},
                "keep": {"is": "last_turns", "k": 2},
                "action": {"is": "drop"},
            }
        ],
    }
    with pytest.raises(InvalidPolicy, match=r"stages\[0\]\.trigger\.is is 'acme\.long_turns'; known: "):
        Policy.from_json(policy)
    register(LongTurns)
    assert Policy.from_json(policy).stages[0].trigger == LongTurns(5)


def test_what_is_not_registered_cannot_be_used() -> None:
    """Else it would be stored, and the conversation could never be read again."""
    with pytest.raises(InvalidPolicy, match="LongTurns"):
        Stage(LongTurns(5), LastTurns(2), Drop())


@pytest.mark.parametrize("base", ["trigger", "keep", "action"])
def test_a_bare_base_class_is_no_part(base: str) -> None:
    parts: dict[str, Any] = {"trigger": Turns(5), "keep": LastTurns(2), "action": Drop()}
    bare: dict[str, Any] = {"trigger": Trigger(), "keep": Keep(), "action": Action()}
    with pytest.raises(InvalidPolicy, match=base):
        Stage(**{**parts, base: bare[base]})


def test_a_keep_of_ones_own_is_refused() -> None:
    """No plan knows what it keeps; it would pass for one that keeps nothing."""

    @dataclass(frozen=True)
    class Half(Keep):
        word: ClassVar[str] = "acme.half"

    with pytest.raises(InvalidPolicy, match="Half"):
        Stage(Turns(5), register(Half)(), Drop())


@pytest.mark.parametrize(
    "action", [DigestAction.SUMMARIZE, DigestAction.CHUNK, DigestAction.REDACT, DigestAction.CLEAR]
)
def test_an_action_that_refines_none_of_ours_is_refused(action: DigestAction) -> None:
    """Only what derives from Redact says what is shown, only what derives from Summarize has a limit."""
    kind = dataclass(frozen=True)(type("Mine", (Action,), {"word": f"acme.{action}", "digest_action": action}))
    with pytest.raises(InvalidPolicy, match="Mine"):
        Stage(Turns(5), LastTurns(2), register(kind)())


def test_an_action_that_refines_a_summary_is_shown_like_one() -> None:
    @register
    @dataclass(frozen=True)
    class Minutes(Summarize):
        word: ClassVar[str] = "acme.minutes"

    stage = Stage(Turns(5), LastTurns(2), Minutes(max_tokens=77))
    assert stage.render is not None
    assert Stage.from_json(stage.to_json()) == stage
    assert stage != Stage(Turns(5), LastTurns(2), Summarize(max_tokens=77))
    assert stage.fingerprint != Stage(Turns(5), LastTurns(2), Summarize(max_tokens=77)).fingerprint


@pytest.mark.slow
def test_the_parts_of_installed_packages_are_found(tmp_path: Path) -> None:
    """In a process of its own, beside a package whose parts cannot be imported: that is logged and no more."""
    (tmp_path / "acme_parts.py").write_text(
        "from dataclasses import dataclass\n"
        "from hitherto.policies import Redact, register\n"
        "@register\n"
        "@dataclass(frozen=True)\n"
        "class Shorten(Redact):\n"
        "    word = 'acme.cut_short'\n"
    )
    for name, module in (("acme", "acme_parts"), ("broken", "missing_parts")):
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[hitherto.components]\n{name} = {module}\n")
    stage = {
        "trigger": {"is": "turns", "n": 8},
        "keep": {"is": "last_turns", "k": 3},
        "action": {"is": "acme.cut_short"},
    }
    policy = {"version": 1, "name": "mine", "stages": [stage]}
    program = f"""
import asyncio, logging, hitherto
logging.basicConfig()
async def main():
    async with hitherto.open("memory:", policy={json.dumps(policy)!r}) as memory:
        print(hitherto.policies.Policy.from_json({policy!r}).stages[0].action)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, "Shorten(calls=False, never=(), at_least=0)"), done.stderr
    assert "missing_parts" in done.stderr
