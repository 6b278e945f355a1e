"""The requests that can be read off a transcript."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hitherto import Call, Message, assistant, system, tool_result, user
from hitherto.core.log.message import Role
from hitherto.simulation.run import steps

SAID = {
    "s": system("Be brief."),
    "u": user("And now?"),
    "a": assistant("So it is."),
    "c": assistant(calls=[Call(id="1", name="f"), Call(id="2", name="g")]),
    "r": tool_result("1", "done"),
    "q": tool_result("2", "done too"),
}


def written(letters: str) -> list[str]:
    """The steps of a transcript of these messages, as "asked>answered"."""
    names = {id(message): letter for letter, message in SAID.items()}

    def text(messages: tuple[Message, ...]) -> str:
        return "".join(names[id(message)] for message in messages)

    return [f"{text(one.asked)}>{text(one.answered)}" for one in steps(SAID[letter] for letter in letters)]


def test_a_conversation() -> None:
    assert written("uaua") == ["u>a", "u>a"]


def test_every_batch_of_results_is_answered_by_a_request_of_its_own() -> None:
    assert written("sucrqcrqaua") == ["su>c", "rq>c", "rq>a", "u>a"]


def test_what_is_said_in_one_go_is_one_answer() -> None:
    assert written("uaacrq") == ["u>aac", "rq>"]


def test_two_who_ask_before_anyone_answers_ask_once() -> None:
    assert written("uua") == ["uu>a"]


def test_what_is_left_unanswered_is_a_request_too() -> None:
    assert written("uau") == ["u>a", "u>"]


def test_a_greeting_answers_nothing() -> None:
    assert written("aua") == [">a", "u>a"]
    assert written("") == []


@given(st.text("sucrqa", max_size=30))
def test_nothing_is_lost_and_nothing_twice(letters: str) -> None:
    found = list(steps(SAID[letter] for letter in letters))
    assert [message for one in found for message in (*one.asked, *one.answered)] == [SAID[one] for one in letters]
    assert all(message.role is not Role.ASSISTANT for one in found for message in one.asked)
    assert all(message.role is Role.ASSISTANT for one in found for message in one.answered)
    assert all(one.asked for one in found[1:])
    assert all(one.answered for one in found[:-1])
