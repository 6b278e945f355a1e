"""Recall in other languages: the message that answers comes first, by words and with the default embedder."""

from __future__ import annotations

from pathlib import Path

import pytest

import hitherto
from hitherto.cli.bench.questions import load
from hitherto.cli.bench.retrieval import SearchIn, measure

CROSS_LINGUAL = 13
"""The category of the questions in another language than the messages; the others are numbered by language."""

HERE = Path(__file__).parent


@pytest.mark.parametrize("search_in", SearchIn)
@pytest.mark.parametrize("embedder", ["wordllama", "none"])
@pytest.mark.parametrize("file", ["languages.json", "languages_held_out.json", "languages_further.json"])
async def test_56_of_60_questions_in_twelve_languages_find_their_answer_first(
    file: str, embedder: str, search_in: SearchIn
) -> None:
    async with hitherto.open("memory:", worker=False, embedder=embedder) as memory:
        report = await measure(memory, load(HERE / file), ks=[1, 5], search_in=search_in)
    own = [answer for answer in report.answers if answer.question.category != CROSS_LINGUAL]
    missed = [answer.question.text for answer in own if answer.recall(1) == 0]
    assert len(own) == 60
    assert len(missed) <= 4, missed
