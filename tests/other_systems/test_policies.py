"""The policies of other systems, by the names that their parameters have there."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto import Policy, chunks, none, redact, rolling, sliding_window, summarize, trim
from hitherto.errors import InvalidPolicy
from hitherto.other_systems.chat_store.policy import synopsis
from hitherto.other_systems.legacies.policy import rolling_chunks
from hitherto.other_systems.session_strategies.memory_strategy import strategy
from hitherto.other_systems.session_strategies.policies import compacting, summarizing, trimming
from hitherto.other_systems.sliding_summaries.policy import rolling_window


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (rolling_window(), sliding_window()),
        (rolling_window(memory_rolling_window_size=20, memory_summarize_after_seq=7), sliding_window(20, 7)),
        (rolling_chunks(), chunks()),
        (rolling_chunks(SUMMARIZATION_THRESHOLD=25, BATCH_SIZE=4, top_k=2), chunks(25, 4, top_k=2)),
        (trimming(), trim()),
        (trimming(max_turns=9, keep_last_n_turns=3), trim(9, 3)),
        (summarizing(), summarize()),
        (summarizing(context_limit=9, keep_last_n_turns=3), summarize(9, 3)),
        (compacting(), redact()),
        (compacting(trigger={"turns": 6}, keep=2), redact(6, 2)),
        (compacting(trigger=6, calls=True, at_least=9), redact(6, calls=True, at_least=9)),
        (synopsis(), none()),
        (synopsis(summaryEnabled=True), rolling()),
        (synopsis(True, summaryThreshold=20, summaryKeepLast=6), rolling(20, 6)),
    ],
)
def test_they_are_ours(theirs: Policy, ours: Policy) -> None:
    assert theirs == ours


@pytest.mark.parametrize(
    "trigger", [{}, {"turns": True}, {"turns": 0}, {"turns": "6"}, {"tokens": 6}, {"turns": 6, "more": 1}, None, "6"]
)
def test_the_nested_trigger(trigger: Any) -> None:
    with pytest.raises(InvalidPolicy, match="trigger"):
        compacting(trigger=trigger)
    with pytest.raises(InvalidPolicy, match="trigger"):
        strategy({"memoryCompacting": {"trigger": trigger}})
