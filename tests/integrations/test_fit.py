"""`within_budget`: every model call of a run fits, whatever its tools give back."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, AgentOutputSchema, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hitherto.core.context.request import ContextRequest
from hitherto.errors import BudgetExceeded, InvalidBudget
from hitherto.integrations.openai_agents import within_budget
from hitherto.integrations.openai_agents.fit import fit_items, tools_tokens
from hitherto.tokens import counter_for
from hitherto.wire import codec
from tests.integrations.planner import calls, says
from tests.wire.samples import SOUND

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


def within(room: int) -> ContextRequest:
    """A request with room for so many tokens of items."""
    budget = room + RESPONSES.framing
    return ContextRequest(
        incoming=(), instructions=None, budget=budget, reserve=0, counter=COUNTER, codec=RESPONSES, framework=True
    )


def test_what_fits_stays_as_it_is() -> None:
    items = [asks("a"), *called("1"), gave("1", "b"), answers("c"), gave("9", "its call is elsewhere")]
    items.append({"role": "user", "content": [SOUND]})  # which the SDK's models for other APIs take
    left = fit_items(items, within(size(items)))
    assert all(one is item for one, item in zip(left, items, strict=True))


@pytest.mark.parametrize("room", [10_000, 140])
def test_what_the_api_would_refuse_is_mended(room: int) -> None:
    loop = [{**called("1")[0], "arguments": "[]"}, gave("1", "half \ud800")]
    left = fit_items([asks("word " * 100), *loop, *loop], within(room))
    assert [one["call_id"] for one in left[-2:]] == ["1_2", "1_2"]
    assert left[-2]["arguments"] == '{"arguments":"[]"}'
    assert left[-1]["output"] == "half \ufffd"


def test_what_goes_first() -> None:
    """As in a context: what came before the question, then older calls since, then how it began, unless the newest
    results are cut anyway."""
    long = "word " * 200
    rules, before = {"role": "system", "content": "The digest."}, [asks("To begin with."), asks(long), answers(long)]
    loop = [*called("1"), gave("1", long), *called("2"), gave("2", long)]
    newest = [*called("3", "4"), gave("3", long * 2), gave("4", "short")]
    items = [rules, *before, asks("And now?"), *loop, *newest]
    first = [rules, before[0], asks("And now?")]

    assert fit_items(items, within(size(items) - 1)) == [*first, *loop, *newest]
    assert fit_items(items, within(size([*first, *loop, *newest]) - 1)) == [*first, *loop[2:], *newest]
    assert fit_items(items, within(size([*first, *loop[2:], *newest]) - 1)) == [*first, *newest]
    assert fit_items(items, within(size([*first, *newest]) - 1)) == [rules, asks("And now?"), *newest]
    whole = size([rules, asks("And now?"), *newest])
    for room, stays in ((whole - 1, first), (140, [rules, asks("And now?")])):
        *left, cut, short = fit_items(items, within(room))
        assert [*left, short] == [*stays, *newest[:2], newest[3]], room
        assert "characters left out" in cut["output"]


def test_the_newest_results_are_cut_and_say_so() -> None:
    items = [asks("And now?"), *called("1", "2"), gave("1", "x" * 100_000 + "y"), gave("2", "short")]
    left = fit_items(items, within(200))
    assert 150 < size(left) <= 200
    assert [*left[:3], left[4]] == [*items[:3], items[4]]
    cut = left[3]["output"]
    assert cut.startswith("xxxx")
    assert " characters left out⟧" in cut
    assert cut.endswith("xy")


def test_a_question_that_does_not_fit() -> None:
    """It is not cut, but where it is what calls were made for."""
    question = asks("word " * 100)
    with pytest.raises(BudgetExceeded, match="raise the budget") as found:
        fit_items([answers("b"), question], within(50))
    assert found.value.over_by == size([question]) - 50
    loop = [*called("1"), gave("1", "short")]
    cut, *left = fit_items([question, *loop], within(size([question, *loop]) - 1))
    assert "characters left out" in cut["content"]
    assert left == loop


def test_results_of_calls_that_the_api_keeps_are_not_left_out() -> None:
    with pytest.raises(BudgetExceeded, match="the calls that they answer are not among the items"):
        fit_items([gave("1", "word " * 100), gave("2", "short")], within(50))


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
    at = max(at for at, item in enumerate(items) if item.get("role") == "user")
    answered = "output" not in items[-1] and at < len(items) - 1
    try:
        left = fit_items(items, within(room))
    except BudgetExceeded:
        newest = [items[-1]] if answered else items[at:]
        bare = [{**one, "output": ""} if "output" in one else one for one in newest]
        assert room < size(bare) + 60 * len(newest)
        return
    assert size(left) <= room
    said = [one["content"] for one in left if one.get("role") == "user"]
    whole = answered or said[-1] == items[at]["content"]
    assert whole or ("characters left out" in said[0] and len(said) == 1), "cut where nothing older is left"
    made = [one["call_id"] for one in left if one.get("type") == "function_call"]
    given_back = [one["call_id"] for one in left if "output" in one]
    assert sorted(made) == sorted(given_back)
    places = [items.index(one) for one in left if one in items and "output" not in one]
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
    plain, text, *formed = [await tools_tokens(agent, None, COUNTER) for agent in agents]
    assert plain == text < min(formed)


def test_wrong_numbers() -> None:
    for wrong in (0, -1, "many"):
        with pytest.raises(InvalidBudget):
            within_budget(wrong)  # pyright: ignore[reportArgumentType]
