"""Composed policies with small numbers, as people would write them."""

from __future__ import annotations

from hypothesis import strategies as st

from hitherto.policies import (
    Chunk,
    Compact,
    Drop,
    LastMessages,
    LastTokens,
    LastTurns,
    Messages,
    Policy,
    Redact,
    ShadowTurn,
    Stage,
    Summarize,
    Tokens,
    Turns,
    Undigested,
)


@st.composite
def stacks(draw: st.DrawFn) -> Policy:
    """Redact, summarize or chunk or compact, then drop: each stage with a later mark than the one before."""
    low = draw(st.integers(1, 2))
    first = low + draw(st.integers(1, 2))
    second = first + draw(st.integers(1, 3))
    third = second + draw(st.integers(1, 3))
    redact = Stage(
        Turns(first),
        LastTurns(low),
        Redact(draw(st.booleans()), draw(st.sampled_from([(), ("search",)])), draw(st.sampled_from([0, 30]))),
    )
    middle = draw(
        st.sampled_from(
            [
                Stage(Turns(second), LastTurns(first), Summarize(200), ShadowTurn()),
                Stage(Messages(second), LastMessages(first), Summarize(60)),
                Stage(Undigested(second), LastMessages(low), Chunk(first, 100)),
                Stage(Tokens(100 * second), LastTokens(50 * first), Summarize(60), within_turn=True),
                Stage(Tokens(100 * second), LastMessages(low), Chunk(first, 100), within_turn=True),
                Stage(Tokens(100 * second), LastTokens(50 * first), Compact()),
                Stage(Turns(second), LastTurns(low), Compact()),
            ]
        )
    )
    drop = Stage(Turns(third), LastTurns(second), Drop())
    chosen = draw(st.sampled_from([(redact, middle), (middle, drop), (redact, middle, drop), (redact, drop)]))
    return Policy("stack", chosen)
