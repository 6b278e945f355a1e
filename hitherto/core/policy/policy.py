"""Policies: values that say when older messages leave the context and what becomes of them.

A policy is an ordered list of stages; a stage is trigger × keep × action × render (design §3). All of them are
frozen and comparable, print as what they are, and go to JSON and back.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self, cast

from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.component import Component, mapping, only, part_from_json, quoted, registered
from hitherto.core.policy.parts import (
    Action,
    Chunk,
    Compact,
    Drop,
    FindFacts,
    Keep,
    LastFraction,
    LastMessages,
    LastTokens,
    LastTurns,
    Nothing,
    Prefix,
    Recalled,
    Redact,
    Render,
    ShadowTurn,
    Summarize,
    SystemMessage,
    Window,
)
from hitherto.core.policy.trigger import AllOf, AnyOf, Fraction, Messages, Seq, Tokens, Trigger, Turns, Undigested
from hitherto.errors import InvalidPolicy

VERSION = 1

LONGEST = 20_000
"""Characters of a policy's JSON text."""

_NAME = 200

_SLOTS: dict[str, type[Component]] = {"trigger": Trigger, "keep": Keep, "action": Action, "render": Render}
_OURS: dict[str, tuple[type[Component], ...]] = {
    "keep": (LastMessages, LastTurns, LastTokens, LastFraction, Nothing, Window),
    "action": (Drop, Redact, Summarize, Chunk, Compact, FindFacts),
}
_EXTENDING = {
    "trigger": "register a trigger of your own, so that policies with it can be read again",
    "keep": "use one of ours, for no plan knows what another keeps",
    "action": "register an action of your own, which derives from the one of ours that it refines",
    "render": "use one of ours",
}
_RENDERS: dict[DigestAction, tuple[type[Render], ...]] = {
    DigestAction.SUMMARIZE: (SystemMessage, ShadowTurn, Prefix),
    DigestAction.CHUNK: (Recalled,),
}

ELSEWHERE = "where contexts recall from, the setting recall and the argument recall of context and configure say"
"""What an error says to who looks for it in a policy."""


@dataclass(frozen=True)
class Stage:
    """One rule: when `trigger` is due, do `action` to what `keep` does not keep, and show it as `render` says.

    A summary without a render is a system message, a chunk is recalled; nothing else has one. With `within_turn`, it
    acts on the turn that is not finished too: on all but the newest messages of as many tokens, or as many messages of
    any kind, as `keep` says, and the results that no message follows yet. A stage that digests takes whole groups, and
    none while a call waits for its result; what the user said is shown all the same until the turn is finished. Raises
    InvalidPolicy for parts that do not go together, and for a stage that could never fire.
    """

    trigger: Trigger
    keep: Keep
    action: Action
    render: Render | None = None
    within_turn: bool = False

    def __post_init__(self) -> None:
        for slot, base in _SLOTS.items():
            part = getattr(self, slot)
            if not isinstance(part, base) and not (slot == "render" and part is None):
                raise InvalidPolicy(f"a stage's {slot} is {quoted(part)}; give a {slot} such as {_EXAMPLES[slot]}")
            if isinstance(part, Component) and not (registered(part) and isinstance(part, _OURS.get(slot, base))):
                raise InvalidPolicy(f"a stage's {slot} is {quoted(part)}; {_EXTENDING[slot]}")
        possible = _RENDERS.get(self.action.digest_action, ())
        if self.render is None:
            if possible:
                object.__setattr__(self, "render", possible[0]())
        elif not isinstance(self.render, possible):
            fits = ", ".join(one.__name__ for one in possible) or "none"
            raise InvalidPolicy(f"{self.action} cannot be shown as {self.render}; a render that fits: {fits}")
        if not isinstance(cast(object, self.within_turn), bool):
            raise InvalidPolicy(f"a stage's within_turn is {quoted(self.within_turn)}; give true or false")
        _check_within_turn(self)
        _check_windowed(self)
        _check_undigested(self)
        _check_fires(self.trigger, self.keep, self.action)

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Component | None] = {slot: getattr(self, slot) for slot in _SLOTS}
        also = {"within_turn": True} if self.within_turn else {}
        return {slot: None if part is None else part.to_json() for slot, part in parts.items()} | also

    @cached_property
    def text(self) -> str:
        """The JSON text under which it is stored."""
        return json.dumps(self.to_json())

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that name the stage in every row it writes: SHA-256 of its JSON with sorted keys."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        shown = "" if self.render is None else f" as {self.render}"
        within = ", within a turn too" if self.within_turn else ""
        return f"when {self.trigger} keep {self.keep}{within}: {self.action}{shown}"

    @classmethod
    def from_json(cls, value: object, *, where: str = "stage") -> Self:
        """The stage that `to_json` wrote. Raises InvalidPolicy naming the field that is wrong."""
        slots = mapping(value, where)
        only(slots, {*_SLOTS, "within_turn"}, where)
        given: dict[str, Any] = {}
        for slot in _SLOTS:
            if slot != "render" or slots.get(slot) is not None:
                given[slot] = part_from_json(slot, slots.get(slot), f"{where}.{slot}")
        given["within_turn"] = slots.get("within_turn", False)
        try:
            return cls(**given)
        except InvalidPolicy as error:
            raise InvalidPolicy(f"{where}: {error}") from error


_EXAMPLES = {"trigger": "Turns(12)", "keep": "LastTurns(4)", "action": "Summarize()", "render": "SystemMessage()"}


def _check_within_turn(stage: Stage) -> None:
    if not stage.within_turn:
        return
    if stage.action.digest_action in (DigestAction.DROP, DigestAction.COMPACT, DigestAction.FACTS):
        raise InvalidPolicy(f"{stage.action} does not act within a turn; Redact, Shorten, Summarize and Chunk do")
    kept = stage.keep.keep if isinstance(stage.keep, Window) else stage.keep
    if isinstance(kept, LastTurns | Nothing):
        raise InvalidPolicy(
            f"{kept} does not say what of a turn stays; with within_turn keep LastTokens, LastFraction or LastMessages"
        )
    if not _fires_within_turn(stage.trigger):
        raise InvalidPolicy(f"{stage.trigger} cannot fire within a turn; with within_turn wait for Tokens or Fraction")


def _fires_within_turn(trigger: Trigger) -> bool:
    """Whether a turn's steps alone can make it due: what counts messages or turns, or waits for a round, does not."""
    if isinstance(trigger, AllOf):
        return any(map(_fires_within_turn, trigger.of)) and not any(isinstance(one, Seq) for one in trigger.of)
    if isinstance(trigger, AnyOf):
        return any(map(_fires_within_turn, trigger.of))
    return not isinstance(trigger, Messages | Turns | Undigested | Seq)


def _check_windowed(stage: Stage) -> None:
    if isinstance(stage.keep, Window) and stage.action.digest_action is not DigestAction.SUMMARIZE:
        raise InvalidPolicy(f"{stage.action} has no digest that content could leave; {stage.keep} goes with Summarize")


def _check_undigested(stage: Stage) -> None:
    """What is dropped or redacted is still undigested: a stage that only does that would fire at every append."""
    of = stage.trigger.of if isinstance(stage.trigger, AnyOf | AllOf) else (stage.trigger,)
    digests = stage.action.digest_action in (DigestAction.SUMMARIZE, DigestAction.CHUNK)
    if not digests and any(isinstance(one, Undigested) for one in of):
        raise InvalidPolicy(f"{stage.action} makes no digest, so {stage.trigger} would stay due; take Messages instead")


def _check_fires(trigger: Trigger, keep: Keep, action: Action) -> None:
    """A low-water mark has to lie below the high-water mark of the same unit."""
    if isinstance(trigger, AnyOf):
        for one in trigger.of:
            _check_fires(one, keep, action)
        return
    if isinstance(trigger, AllOf):
        _check_one_fires(trigger, keep, action)
        return
    kept = keep.keep if isinstance(keep, Window) else keep
    match trigger, kept:
        case Turns(n), LastTurns(k) if k >= n:
            least = n - 1
        case ((Messages(n) | Undigested(n)), LastMessages(k)) if k > n and not isinstance(action, Chunk):
            least = n
        case Tokens(n), LastTokens(t) if t > n:
            least = n
        case Fraction(f, "budget"), LastFraction(k) if k >= f:
            least = f"less than {f}"
        case _:
            if isinstance(trigger, Undigested) and isinstance(action, Chunk) and action.batch > trigger.n:
                raise InvalidPolicy(
                    f"{action} takes more messages than {trigger} waits for; make the batch at most {trigger.n}"
                )
            return
    advice = "wait for more" if least in (0, "0") else f"wait for more, or keep at most {least}"
    raise InvalidPolicy(f"{kept} keeps all that {trigger} waits for, so the stage could never act; {advice}")


def _check_one_fires(trigger: AllOf, keep: Keep, action: Action) -> None:
    """Of triggers that all have to be due, it is enough that one waits for more than is kept."""
    fault: InvalidPolicy | None = None
    for one in trigger.of:
        try:
            _check_fires(one, keep, action)
        except InvalidPolicy as error:
            fault = error
        else:
            return
    if fault is not None:
        raise fault


@dataclass(frozen=True)
class Policy:
    """An ordered list of stages under a name. No stage at all: everything stays, up to the budget.

    With `recall`, contexts recall what they do not show, from all conversations of the scope, unless told otherwise.
    """

    name: str
    stages: tuple[Stage, ...] = ()
    recall: bool = False

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.name), str) or not self.name.strip():
            raise InvalidPolicy(f"the policy's name is {quoted(self.name)}; give it a non-empty one")
        if len(self.name) > _NAME:
            raise InvalidPolicy(f"the policy's name is {quoted(self.name)}; give one of at most {_NAME} characters")
        if not isinstance(cast(object, self.stages), tuple) or not all(
            isinstance(cast(object, stage), Stage) for stage in self.stages
        ):
            raise InvalidPolicy(
                f"the stages of policy {quoted(self.name)} are {quoted(self.stages)}; give a tuple of stages"
            )
        if not isinstance(cast(object, self.recall), bool):
            raise InvalidPolicy(
                f"recall of policy {quoted(self.name)} is {quoted(self.recall)}; give true or false; {ELSEWHERE}"
            )
        if len({stage.fingerprint for stage in self.stages}) != len(self.stages):
            raise InvalidPolicy(f"policy {quoted(self.name)} has the same stage twice; leave one out")

    def doing(self, *actions: DigestAction) -> tuple[Stage, ...]:
        """The stages whose action is one of `actions`, in order."""
        return tuple(stage for stage in self.stages if stage.action.digest_action in actions)

    @property
    def recalls(self) -> bool:
        """Whether contexts show digests that a recall finds for them."""
        return any(isinstance(stage.render, Recalled) for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """`{"version": 1, "name": …, "stages": [{"trigger": {"is": …}, "keep", "action", "render"}, …]}`, and
        `"recall": true` where it recalls."""
        also = {"recall": True} if self.recall else {}
        return {"version": VERSION, "name": self.name, "stages": [stage.to_json() for stage in self.stages], **also}

    @cached_property
    def text(self) -> str:
        """The JSON text under which it is stored; `stored` reads it. Raises InvalidPolicy where it is longer than
        `LONGEST`."""
        text = json.dumps(self.to_json())
        if len(text) > LONGEST:
            raise InvalidPolicy(
                f"the policy {quoted(self.name)} has {len(text):,} characters as JSON; at most {LONGEST:,} are kept, "
                "as each append and context reads them"
            )
        return text

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The policy that `to_json` wrote. Raises InvalidPolicy naming the field that is wrong."""
        try:
            found = cls._read(value)
            _ = found.text
            return found
        except RecursionError as error:
            raise InvalidPolicy("the policy is nested deeper than any policy needs to be") from error

    @classmethod
    def _read(cls, value: object) -> Self:
        top = mapping(value, "policy")
        only(top, {"version", "name", "stages", "recall"}, "policy")
        if top.get("version") != VERSION or isinstance(top.get("version"), bool):
            raise InvalidPolicy(
                f"policy.version is {quoted(top.get('version'))}; this Hitherto reads version {VERSION}"
            )
        stages = top.get("stages")
        if not isinstance(stages, list):
            raise InvalidPolicy(f"policy.stages is {quoted(stages)}; give a list of stages")
        found = cast(list[object], stages)
        return cls(
            name=cast(str, top.get("name")),
            stages=tuple(Stage.from_json(one, where=f"policy.stages[{at}]") for at, one in enumerate(found)),
            recall=cast(bool, top.get("recall", False)),
        )

    def __str__(self) -> str:
        stages = "; ".join(str(stage) for stage in self.stages) or "everything stays"
        return f"{self.name}: {stages}" + ("; recall what is not shown" if self.recall else "")


@dataclass(frozen=True)
class UnreadablePolicy(Policy):
    """A stored policy that this process cannot read, because it lacks the package with its parts. It acts as a policy
    without stages, and is stored again unchanged. `why` says what is wrong with it."""

    raw: str = "{}"
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return json.loads(self.raw)


def policy_json(policy: Policy | None) -> str | None:
    """The JSON text of a policy, if there is one."""
    return None if policy is None else policy.text


def stored(raw: str) -> Policy:
    """The policy of a stored JSON text, `UnreadablePolicy` where it cannot be read."""
    try:
        return _policy(raw)
    except InvalidPolicy as error:
        named = cast(object, json.loads(raw))
        name = cast(dict[str, object], named).get("name") if isinstance(named, dict) else None
        return UnreadablePolicy(name if isinstance(name, str) and name else "unreadable", raw=raw, why=str(error))


@lru_cache(maxsize=256)
def _policy(raw: str) -> Policy:
    """Cached, because policies are frozen, few, and read at every turn. An unreadable one is not cached: its parts may
    be registered later."""
    return Policy.from_json(json.loads(raw))
