"""Finding facts without a digest: what the model is shown, and what is read of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hitherto.core.digests.make import DigestContent, find_facts
from hitherto.core.digests.prompts import FactsOnlyTask
from hitherto.core.ledger import Purpose
from hitherto.core.prompt import Prompt, PromptLine
from hitherto.errors import InvalidModelAnswer
from hitherto.providers.scripted import items
from tests.core.facts.extractions import TASK, count, driven, lines

SAILS = items(facts=[("hobby", "Sails.")])


def found(
    answer: Callable[[Prompt], str], shown: Sequence[PromptLine] = (), input_limit: int = 100_000
) -> tuple[DigestContent, list[Prompt]]:
    making = find_facts(lines=shown or lines("I sail."), input_limit=input_limit, count=count, facts=TASK)
    return driven(making, answer)


def test_it_asks_for_facts_and_nothing_else() -> None:
    made, (asked,) = found(lambda _: SAILS)
    assert [one.content for one in made.facts or ()] == ["Sails."]
    assert (made.items, made.text, made.tokens) == ((), "", 0)
    assert asked.purpose is Purpose.FACTS
    assert list(asked.schema["properties"]) == ["facts"]
    fact = asked.schema["properties"]["facts"]["items"]["properties"]
    for key in ("facts", *fact, *fact["relation"]["enum"]):
        assert f'"{key}"' in asked.system, "where an endpoint takes no schema, the prompt says what the JSON looks like"
    assert [word for word in ("SHAPE", "RULES", "WHO", "CATEGORIES") if word in asked.system] == []
    assert "Statements so far" not in asked.user
    assert "Plays the cello." in asked.user


def test_so_much_in_a_call_that_its_facts_fit_into_the_answer() -> None:
    """Pieces of a long message have its seq; what the model is shown takes no more than it reads."""
    for limit in (100_000, 6_000):
        _, prompts = found(lambda _: SAILS, lines(*["word " * 1_290] * 6), input_limit=limit)
        assert len(prompts) >= 2
        for prompt in prompts:
            assert isinstance(prompt.task, FactsOnlyTask)
            assert sum(count(line.text) for line in prompt.task.lines) <= 3_500
            assert count(prompt.system + prompt.user + json.dumps(prompt.schema)) + prompt.max_tokens <= limit
        assert {line.seq for one in prompts if isinstance(one.task, FactsOnlyTask) for line in one.task.lines} == {
            *range(3, 9)
        }


def test_nothing_is_asked_where_no_user_speaks() -> None:
    said = [replace(line, role="assistant") for line in lines(*["word " * 1_290] * 6)]
    made, prompts = found(lambda _: SAILS, said)
    assert (made.facts, prompts) == ((), [])
    _, prompts = found(lambda _: SAILS, [*said, *lines("I sail.", first=9)])
    assert len(prompts) == 1


@pytest.mark.parametrize("bad", ["", "They sail.", '{"add": []}', '{"facts": 7}', '{"facts": [{"category": "hobby"}]}'])
def test_an_answer_that_cannot_be_used_is_asked_for_once_more(bad: str) -> None:
    answers = [bad, SAILS]
    made, prompts = found(lambda _: answers.pop(0))
    assert [prompt.corrects for prompt in prompts] == [False, True]
    assert [one.content for one in made.facts or ()] == ["Sails."]
    with pytest.raises(InvalidModelAnswer):
        found(lambda _: bad)
