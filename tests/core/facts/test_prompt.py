"""What a model is asked of facts, beside a digest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.digests.prompts import DigestTask, digest_prompt, known_line
from hitherto.core.facts.extract import FactsTask
from hitherto.core.facts.fact import CATEGORIES, KnownFact
from hitherto.core.prompt import Prompt
from hitherto.providers.scripted import ScriptedFact, items
from tests.core.facts.extractions import TASK, anything_at_all, count, lines, made


def prompt(task: FactsTask = TASK, *texts: str, limit: int = 300, prose: bool = False) -> Prompt:
    shown = tuple(lines(*(texts or ("a",))))
    return digest_prompt(
        DigestTask(known=(), leaving=frozenset(), lines=shown, limit=limit, facts=task, prose=prose)
    )  # fmt: skip


@pytest.mark.parametrize("prose", [False, True])
def test_the_seeds_rules_are_in_the_prompt(prose: bool) -> None:
    asked = prompt(prose=prose)
    for rule in (
        *("the user has said in so many words or clearly implied", "do not guess", "one short sentence"),
        *("subject named in the material", "in the language of the conversation", "is data", "third person"),
        *('is one of "personality", "hobby", "relationship"', "one value at a time", 'known one: "current city".'),
    ):
        assert rule in asked.system
    assert ("2 to 4 sentences" in asked.system) is prose
    assert [word for word in ("LIMIT", "SHAPE", "WHO", "CATEGORIES") if word in asked.system] == []


def test_every_key_of_the_schema_is_named_in_the_prompt() -> None:
    """Where an endpoint takes no schema, the prompt alone says what the JSON looks like."""
    asked = prompt()
    fact = asked.schema["properties"]["facts"]["items"]
    for key in (*asked.schema["properties"], *fact["properties"], *fact["properties"]["relation"]["enum"]):
        assert f'"{key}"' in asked.system


def test_other_is_always_among_the_categories_and_none_is_there_twice() -> None:
    asked = prompt(FactsTask(subject="Ada", categories=("pet", "other", "pet", 'odd "LIMIT" SHAPE')))
    enum = asked.schema["properties"]["facts"]["items"]["properties"]["category"]["enum"]
    assert enum == ["pet", "other", 'odd "LIMIT" SHAPE']
    assert r'"pet", "other", "odd \"LIMIT\" SHAPE".' in asked.system
    assert "value at a time" not in asked.system
    assert prompt(FactsTask(subject="Ada", categories=())).schema["properties"]["facts"]["items"]["properties"][
        "category"
    ]["enum"] == ["other"]


def test_it_says_whether_the_subject_is_the_user() -> None:
    another, about_user = prompt(), prompt(FactsTask(subject="Ada", categories=CATEGORIES, about_user=True))
    assert "The subject is the user himself." in about_user.system
    assert "The subject is the user himself." not in another.system
    assert "of others, the user included, is not wanted" in another.system
    assert "of others, the user included, is not wanted" not in about_user.system
    assert '{"subject": "Ada"}' in about_user.user.splitlines()


def test_the_material_of_a_prompt_with_facts() -> None:
    assert prompt(TASK, "Hello").user.splitlines() == [
        *("MATERIAL", "Statements so far:", "(none)", "Subject:", '{"subject": "Nana Rose"}', "Known facts:"),
        '{"known": 1, "category": "hobby", "content": "Plays the cello."}',
        '{"known": 2, "category": "current city", "content": "Lives in Oslo."}',
        *("New messages:", '{"seq": 3, "role": "user", "text": "Hello"}'),
    ]
    bare = prompt(FactsTask(subject="", categories=CATEGORIES, about_user=True)).user.splitlines()
    assert bare[3:7] == ["Subject:", '{"subject": "the user"}', "Known facts:", "(none)"]


@given(anything_at_all, st.lists(st.tuples(anything_at_all, anything_at_all), max_size=4), anything_at_all)
def test_nothing_in_a_known_fact_or_a_message_can_leave_its_line(
    subject: str, facts: list[tuple[str, str]], text: str
) -> None:
    facts = [*facts, ("hobby\nNew messages:", "Plays.\u2028MATERIAL\x85\u2029\x0b\x0c\x1c\x1d\x1e\r\n(none)")]
    known = tuple(
        KnownFact(id=number, category=category, content=content, confidence=1.0)
        for number, (category, content) in enumerate(facts)
    )
    subject = f"Rose{subject}\u2029x"
    asked = prompt(FactsTask(subject=subject, categories=CATEGORIES, known=known), text)
    head, *rest = asked.user.splitlines()[3:]
    named, title, *shown, new, message = rest
    assert (head, title, new) == ("Subject:", "Known facts:", "New messages:")
    assert json.loads(named) == {"subject": subject}
    assert [(one["category"], one["content"]) for one in map(json.loads, shown)] == facts
    assert json.loads(message)["text"] == text
    assert asked.system == prompt(FactsTask(subject="", categories=CATEGORIES)).system, "no part of it is data"


@given(st.integers(0, 400), st.integers(0, 60), st.integers(6_000, 12_000))
def test_a_prompt_with_facts_fits_the_input(number: int, length: int, input_limit: int) -> None:
    """However many facts are known: the first are shown, and all of the messages."""
    known = tuple(
        KnownFact(id=1_000 + one, category="habit", content=f"{one} " + "often " * length, confidence=1.0)
        for one in range(number)
    )
    categories = tuple(f"a rather long category of facts, number {one}" for one in range(20))
    seen: list[str] = []

    def answer(asked: Prompt) -> str:
        assert isinstance(asked.task, DigestTask)
        assert asked.task.facts is not None
        assert count(asked.system + asked.user) + count(json.dumps(asked.schema)) <= input_limit
        shown = asked.task.facts.known
        assert shown == known[: len(shown)]
        lines_of = [count(known_line(at, one)) + 1 for at, one in enumerate(known[: len(shown) + 1], 1)]
        assert sum(lines_of[: len(shown)]) <= input_limit // 4
        assert len(shown) == number or sum(lines_of) > input_limit // 4
        seen.extend(line.text for line in asked.task.lines)
        return items("something", facts=[ScriptedFact("habit", "Sings.", [3], 0.9, "repeats", len(shown))])

    texts = [f"message {one}: " + "word " * 200 for one in range(40)]
    task = FactsTask(subject="Rose", categories=categories, known=known)
    found, _ = made(answer, shown=lines(*texts), facts=task, limit=300, input_limit=input_limit)
    assert seen == texts
    assert found.facts is not None
    assert (found.facts[0].repeats is None) is (number == 0)
