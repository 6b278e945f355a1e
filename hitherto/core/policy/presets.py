"""The named policies (presets), and their form on the command line. Each has defaults, so that it runs by its name."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, cast

from hitherto.core.policy.component import quoted
from hitherto.core.policy.parts import (
    Chunk,
    Compact,
    Drop,
    FindFacts,
    LastFraction,
    LastMessages,
    LastTurns,
    Nothing,
    Prefix,
    Recalled,
    Redact,
    ShadowTurn,
    Shorten,
    Summarize,
    SystemMessage,
    Window,
)
from hitherto.core.policy.policy import ELSEWHERE, Policy, Stage
from hitherto.core.policy.trigger import AllOf, Fraction, Messages, Seq, Tokens, Turns, Undigested
from hitherto.errors import InvalidPolicy

Preset = Callable[..., Policy]

PRESETS: dict[str, Preset] = {}
"""The presets by name, in the order of the design's table."""

_Parameters = ParamSpec("_Parameters")


def _preset(make: Callable[_Parameters, Policy]) -> Callable[_Parameters, Policy]:
    """Registers a preset. What is wrong with its parameters is an InvalidPolicy that names the preset."""
    name = make.__name__
    known = list(inspect.signature(make).parameters)

    @wraps(make)
    def named(*given: _Parameters.args, **by_name: _Parameters.kwargs) -> Policy:
        for word in by_name:
            if word not in known:
                there = ", ".join(known) or "none"
                hint = f"; {ELSEWHERE}" if word == "recall" else ""
                raise InvalidPolicy(f"policy {name!r} has no parameter {quoted(word)}; it has: {there}{hint}")
            if known.index(word) < len(given):
                raise InvalidPolicy(f"policy {name!r} is given {word!r} twice; give it once")
        try:
            return make(*given, **by_name)
        except InvalidPolicy as error:
            said = [*map(quoted, given), *(f"{word}={quoted(value)}" for word, value in by_name.items())]
            raise InvalidPolicy(f"{name}({', '.join(said)}): {error}") from error

    PRESETS[name] = named
    return named


_UNREAD = 2_000
"""Tokens that are read for facts together: their facts fit into an answer (LoCoMo's annotators found 13 in 1,000
tokens), and the rules in front of them are a third of the prompt, not most of it."""


@_preset
def balanced(max_tokens: int = 1_000, *, facts: bool = True) -> Policy:
    """The default. Contexts recall what they do not show, from all conversations of the scope. Where a language model
    is named, all but the newest turns become a summary once the view takes half of the budget; those of a quarter of it
    stay. Unless `facts` is false, it also finds facts about the conversation's subject, once 2,000 tokens are unread,
    when the conversation is finished, and when it rests.

    `max_tokens` bounds the summary's text in tokens. In the presets below it means the same; with `facts`, there the
    model call that makes the digest also finds facts.
    """
    due = AllOf((Fraction(0.5, of="view"), Fraction(0.1, of="budget")))
    shorter = Stage(due, LastFraction(0.05), Shorten(), within_turn=True)
    digested = Stage(
        Fraction(0.5, of="budget"),
        LastFraction(0.25),
        Summarize(max_tokens, needs_model=True),
        SystemMessage(),
    )
    read = (Stage(Tokens(_UNREAD), Nothing(), FindFacts()),) if facts else ()
    return Policy("balanced", (shorter, digested, *read), recall=True)


DEFAULT = balanced()
"""The policy where none was chosen."""


@_preset
def none() -> Policy:
    """Everything stays verbatim; only the budget cuts."""
    return Policy("none")


@_preset
def sliding_window(
    window: int = 14,
    after_seq: int = 5,
    max_tokens: int = 1_000,
    *,
    facts: bool = False,
) -> Policy:
    """A digest of the newest `window` messages, renewed at the end of every round from seq `after_seq` on.

    What is older than the window leaves the digest.
    """
    stage = Stage(Seq(after_seq), Window(window), Summarize(max_tokens, facts=facts), Prefix())
    return Policy("sliding_window", (stage,))


@_preset
def token_threshold(
    threshold: int = 10_000,
    keep_messages: int = 10,
    archive: bool = False,
    max_tokens: int = 1_000,
    *,
    facts: bool = False,
    passage_tokens: int | None = None,
    passage_overlap: int | None = None,
    within_turn: bool = False,
) -> Policy:
    """Above `threshold` tokens, all but the newest `keep_messages` messages become a summary, which is archived too
    with `archive`, in passages of `passage_tokens` tokens that share `passage_overlap` (None: as the settings say).

    With `within_turn`, also in a turn that is not finished, of which the newest `keep_messages` messages of any kind
    stay, and what the user said."""
    action = Summarize(max_tokens, archive, facts, passage_tokens=passage_tokens, passage_overlap=passage_overlap)
    keep = LastMessages(keep_messages)
    stage = Stage(Tokens(threshold), keep, action, SystemMessage(), within_turn=within_turn)
    return Policy("token_threshold", (stage,))


@_preset
def chunks(
    threshold: int = 30,
    batch: int = 20,
    context: int = 20,
    top_k: int = 3,
    max_tokens: int = 300,
    *,
    facts: bool = True,
) -> Policy:
    """With more than `threshold` undigested messages, the oldest `batch` become a searchable chunk. The model call that
    makes it also finds facts, unless `facts` is false.

    Messages that have no chunk yet stay, and at least the newest `context`.
    """
    stage = Stage(Undigested(threshold), LastMessages(context), Chunk(batch, max_tokens, facts), Recalled(top_k))
    return Policy("chunks", (stage,))


@_preset
def trim(max_turns: int = 20, keep_turns: int = 8) -> Policy:
    """At `max_turns` turns, all but the newest `keep_turns` are no longer shown."""
    return Policy("trim", (Stage(Turns(max_turns), LastTurns(keep_turns), Drop()),))


@_preset
def summarize(
    context_limit: int = 20,
    keep_turns: int = 5,
    max_tokens: int = 1_000,
    *,
    facts: bool = False,
) -> Policy:
    """At `context_limit` turns, all but the newest `keep_turns` become a summary, shown as a turn of its own."""
    stage = Stage(Turns(context_limit), LastTurns(keep_turns), Summarize(max_tokens, facts=facts), ShadowTurn())
    return Policy("summarize", (stage,))


@_preset
def redact(trigger_turns: int = 8, keep: int = 3, calls: bool = False, at_least: int = 0) -> Policy:
    """With more than `trigger_turns` turns, tool results become placeholders, except in the newest `keep` turns.

    `calls` redacts the calls' arguments too. It fires only if that frees `at_least` tokens.
    """
    return Policy("redact", (Stage(Turns(_more_than(trigger_turns)), LastTurns(keep), Redact(calls, (), at_least)),))


def _more_than(turns: int) -> int:
    if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:  # pyright: ignore[reportUnnecessaryIsInstance] — callers need not be typed
        raise InvalidPolicy(f"trigger_turns is {quoted(turns)}; give a whole number of turns of at least 1")
    return turns + 1


@_preset
def native(fraction: float = 0.75, keep_messages: int = 4) -> Policy:
    """At `fraction` of the model's context window, all but the newest `keep_messages` messages become the opaque item
    that the model's own endpoint makes of them."""
    return Policy("native", (Stage(Fraction(fraction), LastMessages(keep_messages), Compact()),))


@_preset
def rolling(
    threshold: int = 40,
    keep_last: int = 12,
    max_tokens: int = 1_000,
    *,
    facts: bool = False,
) -> Policy:
    """With more than `threshold` messages, all but the newest `keep_last` go into a running synopsis."""
    stage = Stage(Messages(threshold), LastMessages(keep_last), Summarize(max_tokens, facts=facts), SystemMessage())
    return Policy("rolling", (stage,))


PolicyLike: TypeAlias = Policy | str | Mapping[str, Any]
"""A policy, its name or command-line form, or its JSON, as text or parsed."""


def policy_of(value: object) -> Policy | None:
    """`value` as a policy: a policy, its name, its command-line form, its JSON, or None (gives None). Raises
    InvalidPolicy for anything else."""
    if value is None or isinstance(value, Policy):
        return value
    if isinstance(value, str):
        return _from_text(value) if value.lstrip().startswith("{") else parse(value)
    if isinstance(value, Mapping):
        return Policy.from_json(cast(Mapping[str, object], value))
    raise InvalidPolicy(f"policy is {quoted(value)}; give a policy such as sliding_window(), or its name")


def _from_text(text: str) -> Policy:
    try:
        return Policy.from_json(json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidPolicy(f"the policy begins like JSON but is none: {error}") from error


def parse(text: str) -> Policy:
    """A policy from `name` or `name:parameter=value,…`, e.g. `trim:max_turns=12,keep_turns=4`.

    Raises InvalidPolicy for an unknown name or parameter.
    """
    name, _, rest = text.strip().partition(":")
    preset = PRESETS.get(name.strip())
    if preset is None:
        raise InvalidPolicy(f"there is no policy named {quoted(name)}; known: {', '.join(PRESETS)}")
    arguments: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidPolicy(f"{quoted(pair)} in policy {quoted(text)} is not parameter=value")
        parameter = key.strip()
        if parameter in arguments:
            raise InvalidPolicy(f"{parameter!r} is given twice in policy {quoted(text)}; give it once")
        if parameter == "recall":
            raise InvalidPolicy(f"{quoted(pair)} in policy {quoted(text)} is no parameter of it; {ELSEWHERE}")
        arguments[parameter] = _value(value.strip(), pair, text)
    return preset(**arguments)


_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,18})?", re.ASCII)


def _value(value: str, pair: str, text: str) -> int | float | bool:
    if value in ("true", "false"):
        return value == "true"
    if not _NUMBER.fullmatch(value):
        raise InvalidPolicy(f"{quoted(pair)} in policy {quoted(text)} is not parameter=number (or true, or false)")
    return float(value) if "." in value else int(value)
