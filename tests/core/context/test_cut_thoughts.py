"""Texts that are cut within what a model thought: the rest still says that it was thought."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from hitherto.core.context.expansion import ExpansionPage
from hitherto.core.context.shorten import shortened
from hitherto.core.digests.make import _pieces
from hitherto.core.log.message import Logged, Role, Sums
from hitherto.core.log.speaker import Voice
from hitherto.core.plain_text import mark_at
from hitherto.core.prompt import PromptLine
from hitherto.core.recall.passages import excerpt
from hitherto.tokens import counter_for
from hitherto.wire import assistant

COUNTER = counter_for("o200k_base")
TEXT = "(thinking) " + "calm harbor " * 40 + "\n(thinking) more calm\nI said something else."


def cut_for_a_digest(at: int) -> str:
    return "\n".join(one.text for one in _pieces(PromptLine(0, "assistant", TEXT), 60 + at, COUNTER.count))


def expanded(at: int) -> str:
    page = ExpansionPage(0, 1_000, COUNTER.count)
    said_at = datetime(2026, 7, 9, tzinfo=UTC)
    logged = Logged(seq=0, message=assistant(TEXT), tokens=0, sums=Sums(), rev=0, created_at=said_at)
    page.add(logged, [Voice(TEXT, Role.ASSISTANT)], at)
    return page.finished().text.split("assistant: ")[-1].removeprefix("…").replace("\n  ", "\n")


@pytest.mark.parametrize(
    "cut",
    [
        lambda at: mark_at(TEXT, at) + TEXT[at:],
        lambda at: excerpt(TEXT, [(at, at + 30), (at + 60, at + 90)]),
        lambda at: shortened(TEXT, at, COUNTER),
        expanded,
        cut_for_a_digest,
    ],
)
def test_the_rest_of_a_thought_says_so(cut: Callable[[int], str]) -> None:
    for at in range(len(TEXT)):
        for line in cut(at).splitlines():
            assert line.startswith("(thinking) ") or not re.search("calm|harbor", line), (at, line)
            assert "something" not in line or "(" not in line
