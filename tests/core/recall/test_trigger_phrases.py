"""Which questions ask for what was said in another conversation."""

from __future__ import annotations

import pytest

from hitherto.core.recall.trigger_phrases import TRIGGERS, triggered, without


def test_the_seeds_triggers() -> None:
    assert TRIGGERS == (
        "what did we discuss",
        "previous conversation",
        "last time",
        "remind me",
        "we mentioned",
        "earlier you said",
    )


@pytest.mark.parametrize("phrase", TRIGGERS)
@pytest.mark.parametrize("question", ["{}, authentication", "authentication: {}!", "{}\nauthentication?"])
def test_every_trigger_triggers(phrase: str, question: str) -> None:
    for spelled in (phrase, phrase.upper(), phrase.replace(" ", "  ")):
        asked = question.format(spelled)
        assert triggered(asked, TRIGGERS) == phrase
        assert without(asked, TRIGGERS).strip(" ,:!?\n") == "authentication"


@pytest.mark.parametrize(
    "question",
    [
        "How do I do authentication?",
        "The blast times out during authentication",
        "Lasting time for authentication",
        "It was reminded meanwhile: authentication",
        "the last of its time, authentication",
        "authentication? He mentioned we",
    ],
)
def test_a_phrase_counts_as_words_and_not_as_a_part_of_words(question: str) -> None:
    assert triggered(question, TRIGGERS) is None
    assert without(question, TRIGGERS) == question


@pytest.mark.parametrize(
    ("phrase", "question"),
    [
        ("letztes Mal", "Was war LETZTES MAL mit der Anmeldung?"),
        ("rappelle-moi", "Rappelle-moi : la réunion, c'est où ?"),
        ("上次", "我们上次说的身份验证是什么？"),
        ("في المرة السابقة", "ماذا قلنا في المرة السابقة عن الاجتماع؟"),
        ("geçen sefer", "GEÇEN SEFER toplantı için ne demiştik?"),
    ],
)
def test_other_languages(phrase: str, question: str) -> None:
    assert triggered(question, ("remind me", phrase)) == phrase


@pytest.mark.parametrize("text", ["Remind me!", "Last time?", ""])
def test_nothing_is_left_of_a_question_that_asks_for_nothing_else(text: str) -> None:
    assert without(text, TRIGGERS) == ""
