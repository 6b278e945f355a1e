"""Hypothesis strategies for policies: every part, every combination of parts that goes together."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hitherto.core.log.frontier import DigestAction
from hitherto.errors import InvalidPolicy
from hitherto.policies import (
    PRESETS,
    Action,
    AllOf,
    AnyOf,
    Chunk,
    Compact,
    Drop,
    FindFacts,
    Fraction,
    Keep,
    LastFraction,
    LastMessages,
    LastTokens,
    LastTurns,
    Messages,
    Nothing,
    Policy,
    Prefix,
    Recalled,
    Redact,
    Render,
    Seq,
    ShadowTurn,
    Shorten,
    Stage,
    Summarize,
    SystemMessage,
    Tokens,
    Trigger,
    Turns,
    Undigested,
    Window,
)

WITHIN_TURN = (DigestAction.REDACT, DigestAction.SUMMARIZE, DigestAction.CHUNK)

_few = st.integers(1, 12)
_tokens = st.integers(1, 2_000)
_names = st.text(min_size=1, max_size=12)
_lines = st.text(max_size=30).filter(lambda text: "{text}" not in text)
_templates = st.builds("{}{{text}}{}".format, _lines, _lines).filter(lambda text: text.count("{text}") == 1)

_shares = st.floats(0, 1, exclude_min=True, allow_subnormal=False)

_single: st.SearchStrategy[Trigger] = st.one_of(
    st.builds(Messages, _few),
    st.builds(Turns, _few),
    st.builds(Tokens, _tokens),
    st.builds(Fraction, _shares, st.sampled_from(["window", "budget", "view"])),
    st.builds(Seq, st.integers(0, 30)),
    st.builds(Undigested, _few),
)


def _joined(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(st.builds(AnyOf, several), st.builds(AllOf, several))


triggers: st.SearchStrategy[Trigger] = st.recursive(_single, _joined, max_leaves=4)

_plain: st.SearchStrategy[Keep] = st.one_of(
    st.just(Nothing()),
    st.builds(LastMessages, _few),
    st.builds(LastTurns, _few),
    st.builds(LastTokens, _tokens),
    st.builds(LastFraction, _shares),
)


@st.composite
def _windows(draw: st.DrawFn) -> Window:
    return Window(draw(st.integers(26, 40)), draw(_plain))


keeps: st.SearchStrategy[Keep] = st.one_of(_plain, _windows())

actions: st.SearchStrategy[Action] = st.one_of(
    st.just(Drop()),
    st.builds(
        Redact,
        calls=st.booleans(),
        never=st.lists(st.one_of(_names, st.sampled_from(["look", "search"])), max_size=3).map(tuple),
        at_least=st.one_of(st.just(0), _tokens),
    ),
    st.builds(Shorten, characters=st.none() | st.integers(50, 400), at_least=st.one_of(st.just(0), _tokens)),
    st.builds(Summarize, max_tokens=st.integers(50, 2_000), archive=st.booleans(), needs_model=st.booleans()),
    st.builds(Chunk, batch=_few, max_tokens=st.integers(50, 2_000)),
    st.just(Compact()),
    st.just(FindFacts()),
)

renders: st.SearchStrategy[Render] = st.one_of(
    st.builds(SystemMessage, _templates),
    st.builds(Prefix, _templates),
    st.builds(ShadowTurn, st.text(min_size=1).filter(lambda text: bool(text.strip())), _templates),
    st.builds(Recalled, _few),
)


@st.composite
def stages(draw: st.DrawFn, *, native: bool = True) -> Stage:
    """A stage whose parts go together. Without `native`, none that needs an endpoint that compacts."""
    action = draw(actions if native else actions.filter(lambda one: one.digest_action is not DigestAction.COMPACT))
    keep = draw(keeps if action.digest_action is DigestAction.SUMMARIZE else _plain)
    render: Render | None = None
    if action.digest_action is DigestAction.SUMMARIZE:
        render = draw(st.one_of(st.none(), renders.filter(lambda one: not isinstance(one, Recalled))))
    elif action.digest_action is DigestAction.CHUNK:
        render = draw(st.one_of(st.none(), st.builds(Recalled, _few)))
    for _ in range(20):
        try:
            part = keep.keep if isinstance(keep, Window) else keep
            may = action.digest_action in WITHIN_TURN and not isinstance(part, LastTurns | Nothing)
            within = may and draw(st.booleans())
            return Stage(draw(triggers), keep, action, render, within_turn=within)
        except InvalidPolicy:  # it keeps more than its trigger, or the batch is larger: another trigger
            continue
    return Stage(Seq(draw(st.integers(0, 30))), keep, action, render)


@st.composite
def presets(draw: st.DrawFn, *names: str, native: bool = True) -> Policy:
    """A preset with small numbers of its own: one of `names`, or any."""
    low = draw(st.integers(1, 4))
    high = low + draw(st.integers(1, 8))
    tokens = draw(st.integers(20, 400))
    numbers: dict[str, dict[str, Any]] = {
        "balanced": {},
        "none": {},
        "sliding_window": {"window": high + 1, "after_seq": low},
        "token_threshold": {"threshold": tokens, "keep_messages": low, "within_turn": draw(st.booleans())},
        "chunks": {"threshold": high, "batch": low, "context": low},
        "trim": {"max_turns": high, "keep_turns": low},
        "summarize": {"context_limit": high, "keep_turns": low},
        "redact": {"trigger_turns": high, "keep": low},
        "native": {"fraction": draw(st.sampled_from([0.05, 0.5, 1.0])), "keep_messages": low},
        "rolling": {"threshold": high, "keep_last": low},
    }
    assert set(numbers) == set(PRESETS), "every preset is drawn"
    name = draw(st.sampled_from(sorted(set(names or numbers) - (set() if native else {"native"}))))
    return PRESETS[name](**numbers[name])


@st.composite
def policies(draw: st.DrawFn, *, native: bool = True, max_stages: int = 4) -> Policy:
    """A valid policy: a preset, or up to `max_stages` stages of any kind. Without `native`, one that needs no
    endpoint that compacts."""
    if draw(st.booleans()):
        return draw(presets(native=native))
    found = draw(st.lists(stages(native=native), max_size=max_stages, unique_by=lambda stage: stage.fingerprint))
    name = draw(st.text(min_size=1, max_size=20).filter(lambda name: bool(name.strip())))
    return Policy(name, tuple(found), recall=draw(st.booleans()))
