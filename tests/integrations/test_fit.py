"""`within_budget`: every model call of a run fits, whatever its tools give back."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, AgentOutputSchema, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hitherto.errors import BudgetExceeded, InvalidBudget
from hitherto.integrations.openai_agents import within_budget
from hitherto.integrations.openai_agents.fit import fit_items, fixed_tokens
from hitherto.tokens import counter_for
from hitherto.wire import codec
from tests.integrations.planner import calls, says

COUNTER = counter_for("o200k_base")
RESPONSES = codec("openai.responses")
Item = dict[str, Any]


def size(items: list[Any]) -> int:
    return sum(RESPONSES.tokens(item, COUNTER) for item in items)


def asks(text: str) -> Item:
    return {"role": "user", "content": text}


def answers(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def called(*ids: str) -> list[Item]:
    return [{"type": "function_call", "call_id": one, "name": "look", "arguments": "{}"} for one in ids]


def gave(id: str, text: str) -> Item:
    return {"type": "function_call_output", "call_id": id, "output": text}


def test_what_fits_stays_as_it_is() -> None:
    items = [asks("a"), *called("1"), gave("1", "b"), answers("c"), asks("d")]
    assert fit_items(items, size(items), COUNTER) == items


def test_what_goes_first() -> None:
    """What came before the question, then results of the calls since, then those calls, then the newest results."""
    long = "word " * 200
    system, before = {"role": "system", "content": "The digest."}, [asks(long), answers(long)]
    loop = [*called("1"), gave("1", long), *called("2"), gave("2", long)]
    newest = [*called("3", "4"), gave("3", long * 2), gave("4", "short")]
    items = [system, *before, asks("And now?"), *loop, *newest]

    left = fit_items(items, size(items) - 1, COUNTER)
    assert left == [system, before[1], asks("And now?"), *loop, *newest]
    left = fit_items(items, size([system, asks("And now?"), *loop, *newest]) - 1, COUNTER)
    assert left == [asks("And now?"), *loop, *newest], "the digest goes last of what came before"
    redacted = [loop[0], gave("1", "⟦removed: look⟧"), *loop[2:]]
    left = fit_items(items, size([asks("And now?"), *loop, *newest]) - 1, COUNTER)
    assert left == [asks("And now?"), *redacted, *newest]
    redacted[3] = gave("2", "⟦removed: look⟧")
    left = fit_items(items, size([asks("And now?"), *redacted, *newest]), COUNTER)
    assert left == [asks("And now?"), *redacted, *newest]
    left = fit_items(items, size([asks("And now?"), *redacted, *newest]) - 1, COUNTER)
    assert left == [asks("And now?"), *redacted[2:], *newest]
    left = fit_items(items, size([asks("And now?"), *newest]) - 1, COUNTER)
    assert [one.get("call_id") for one in left] == [None, "3", "4", "3", "4"]
    assert left[-1] == newest[-1]


def test_the_newest_results_are_cut_and_say_so() -> None:
    items = [asks("And now?"), *called("1", "2"), gave("1", "x" * 100_000), gave("2", "short")]
    left = fit_items(items, 200, COUNTER)
    assert size(left) <= 200
    assert left[:3] == items[:3]
    assert left[-1] == items[-1]
    assert left[-2]["output"].startswith("xxxx")
    assert left[-2]["output"].endswith(" characters⟧")


def test_a_question_that_does_not_fit() -> None:
    with pytest.raises(BudgetExceeded, match="raise the budget") as found:
        fit_items([answers("b"), asks("word " * 100)], 50, COUNTER)
    assert found.value.over_by > 0


TEXTS = st.sampled_from(["", "short", "word " * 30, "語" * 40])


@st.composite
def histories(draw: st.DrawFn) -> list[Item]:
    found: list[Item] = []
    for turn in range(draw(st.integers(1, 4))):
        found.append(asks(draw(TEXTS) + f" {turn}"))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"{turn}-{step}-{at}" for at in range(draw(st.integers(1, 3)))]
            found += called(*ids)
            found += [gave(one, draw(TEXTS)) for one in draw(st.permutations(ids))]
        if draw(st.booleans()):
            found.append(answers(draw(TEXTS) + f" {turn}"))
    return found


@given(items=histories(), share=st.floats(0, 1.1))
def test_any_history_fits_with_its_groups_whole(items: list[Item], share: float) -> None:
    room = int(size(items) * share)
    question = next(item for item in reversed(items) if item.get("role") == "user")
    try:
        left = fit_items(items, room, COUNTER)
    except BudgetExceeded:
        newest = items[items.index(question) :]
        short = [{**one, "output": ""} if "output" in one else one for one in newest]
        assert room < size(short) + 40 * len(short)
        return
    assert size(left) <= room
    assert question in left
    made = [one["call_id"] for one in left if one.get("type") == "function_call"]
    given_back = [one["call_id"] for one in left if "output" in one]
    assert sorted(made) == sorted(given_back)
    places = [items.index(one) for one in left if "output" not in one]
    assert places == sorted(places)
    if room >= size(items):
        assert left == items


async def test_a_tool_loop_of_a_run() -> None:
    """Each call of the model is within the budget, with the instructions and the tools."""

    @function_tool
    def look(at: int) -> str:
        """Looks."""
        return f"{at}: " + "word " * 2_000

    steps = [*([calls("look", f"c{at}", at=at)] for at in range(5)), [says("Done.")]]
    model = ScriptedModel(steps=steps)
    agent = Agent(name="a", instructions="Look well. " * 20, model=model, tools=[look])
    config = RunConfig(tracing_disabled=True, call_model_input_filter=within_budget(3_000, reserve=100))
    result = await Runner.run(agent, "Look five times.", run_config=config)
    assert result.final_output == "Done."
    assert len(model.calls) == 6
    for call in model.calls:
        sent: Any = call.input
        assert size(sent) <= 2_900 - 100
        assert sent[0]["content"] == "Look five times."
        made = [one["call_id"] for one in sent if one.get("type") == "function_call"]
        assert made == [one["call_id"] for one in sent if one.get("type") == "function_call_output"]
    last: Any = model.calls[-1].input
    assert last[-1]["output"].startswith("4: word"), "the newest is shown"


class Forecast(BaseModel):
    sunny: bool


async def test_the_form_of_the_answer_counts() -> None:
    agents = [Agent(name="a", output_type=form) for form in (None, str, Forecast, AgentOutputSchema(Forecast))]
    plain, text, *formed = [await fixed_tokens(agent, "Be brief.", None, COUNTER) for agent in agents]
    assert plain == text < min(formed)


def test_wrong_numbers() -> None:
    for wrong in (0, -1, "many"):
        with pytest.raises(InvalidBudget):
            within_budget(wrong)  # pyright: ignore[reportArgumentType]
