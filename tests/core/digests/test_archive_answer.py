"""What a model says of a conversation is read, in whatever shape it comes."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.digests.archive import ArchiveSummary, archive_from
from hitherto.core.digests.lists import LONGEST, MOST
from hitherto.errors import InvalidModelAnswer
from tests.core.growth import TIMES, growth

READ = ArchiveSummary(
    summary="They agreed on tokens.\n\nIt took a while.",
    topics=("authentication", "JWT", "security"),
    entities=("John", "UserService", "Redis"),
    decisions=("Use JWT with 1-hour expiration",),
    questions=("Should we implement refresh tokens?",),
)
PARTS = {
    "SUMMARY": READ.summary,
    "TOPICS": ", ".join(READ.topics),
    "ENTITIES": ", ".join(READ.entities),
    "DECISIONS": READ.decisions[0],
    "QUESTIONS": READ.questions[0],
}
AS_JSON = {
    "summary": READ.summary,
    "topics": list(READ.topics),
    "entities": list(READ.entities),
    "decisions": list(READ.decisions),
    "questions": list(READ.questions),
}
OWN_NAMES = {
    "Summary": [READ.summary],
    "conversation_topics": ", ".join(READ.topics),
    "entities_mentioned": [{"name": name, "mentions": 2} for name in READ.entities],
    "decisions_made": f"- {READ.decisions[0]}",
    "open_questions": READ.questions,
    "confidence": 0.9,
}


def headings(form: str, *, order: int = 1, between: str = "\n\n") -> str:
    """The five parts under headings of that form."""
    return between.join(form.format(name) + body for name, body in list(PARTS.items())[::order])


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(headings("## {}\n"), id="seed 001"),
        pytest.param(headings("## {}  \n\n"), id="blank lines"),
        pytest.param(headings("# {}\n", between="\n"), id="another level"),
        pytest.param(headings("###### {}:\n"), id="level 6 and a colon"),
        pytest.param(headings("## {}\n").replace("SUMMARY", "Summary").replace("TOPICS", "topics"), id="case"),
        pytest.param(headings("## {}\n", order=-1), id="the other way round"),
        pytest.param(headings("**{}**\n"), id="bold"),
        pytest.param(headings("**{}:** "), id="bold, on one line"),
        pytest.param(headings("__{}__: "), id="underscores"),
        pytest.param(headings("{}: "), id="colons alone"),
        pytest.param(headings("{}\n"), id="words alone"),
        pytest.param(headings("## 1. {}\n"), id="numbered"),
        pytest.param("Here is what I found:\n\n" + headings("## {}\n"), id="after some words"),
        pytest.param("```markdown\n" + headings("## {}\n") + "\n```", id="in a fence"),
        pytest.param(headings("## {}\n").replace("\n", "\r\n").replace("\r\n\r\nIt", "\n\nIt"), id="CRLF"),
        pytest.param(json.dumps(AS_JSON), id="JSON"),
        pytest.param(f"Here it is:\n```json\n{json.dumps(AS_JSON, indent=2)}\n```\nAnything else?", id="fenced JSON"),
        pytest.param(f"Sure! {json.dumps(AS_JSON)} Done.", id="JSON between words"),
        pytest.param(json.dumps({"archive": AS_JSON}), id="JSON in an object"),
        pytest.param(json.dumps(AS_JSON).replace("\\n", "\n"), id="JSON with line breaks in a string"),
        pytest.param(json.dumps(OWN_NAMES), id="JSON with the seed's names"),
    ],
)
def test_one_answer_in_many_shapes(answer: str) -> None:
    assert archive_from(answer) == READ


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a, b and c, and d", ("a", "b and c", "d")),
        ("- a\n- b\n* c\n• d", ("a", "b", "c", "d")),
        ("1. a\n2) b", ("a", "b")),
        ("- a, b", ("a", "b")),
        ("- a, b\n- c", ("a, b", "c")),
        ("a\nb", ("a", "b")),
        ('["a", "b, c"]', ("a", "b, c")),
        ("[a, b]", ("a", "b")),
        ("**a**, `b`, “c”, 'd'", ("a", "b", "c", "d")),
        ("Ada (lead, tester), 1,000 users", ("Ada (lead, tester)", "1,000 users")),
        ("Ada (lead, Bob", ("Ada (lead", "Bob")),
        ("认证、缓存，安全", ("认证", "缓存", "安全")),
        ("JWT, jwt, Jwt", ("JWT",)),
        ("None", ()),
        ("- None.", ()),
        ("(none)", ()),
        ("N/A", ()),
        ("None identified", ()),
        ("No topics were mentioned.", ()),
        ("", ()),
        ("-, ;, …", ()),
        ("none of the above is safe", ("none of the above is safe",)),
    ],
)
def test_lists_of_names(written: str, read: tuple[str, ...]) -> None:
    assert archive_from(f"## SUMMARY\nx\n## TOPICS\n{written}\n## ENTITIES\nAda").topics == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Use JWT, not sessions\nBook May 3", ("Use JWT, not sessions", "Book May 3")),
        ("- Use JWT\n  for all services\n- Book May 3", ("Use JWT for all services", "Book May 3")),
        ("- [ ] Ask Ada\n- [x] Ask Bob", ("Ask Ada", "Ask Bob")),
        ("No deploys on Fridays", ("No deploys on Fridays",)),
        ("Nothing ships before May", ("Nothing ships before May",)),
        ("No decisions were made", ()),
        ("No final decisions have been made yet.", ()),
        ("None were made so far", ()),
    ],
)
def test_lists_of_sentences(written: str, read: tuple[str, ...]) -> None:
    assert archive_from(f"## SUMMARY\nx\n## DECISIONS\n{written}").decisions == read


def test_words_that_are_no_heading_stay_where_they_are() -> None:
    told = "Decisions were made to use JWT.\nTopics came and went.\nThe summary of it is short."
    assert archive_from(f"## SUMMARY\n{told}") == ArchiveSummary(summary=told)
    with pytest.raises(InvalidModelAnswer, match="headings"):
        archive_from(told)
    assert archive_from("# Summary of the talk\nThey met.").summary == "They met."


def test_what_stands_before_the_headings_is_the_summary_if_there_is_no_other() -> None:
    found = archive_from("They met.\n\n## TOPICS\nsoup")
    assert (found.summary, found.topics) == ("They met.", ("soup",))


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            " \n\t ",
            "…",
            "```\n```",
            "## SUMMARY\n\n## TOPICS\na, b",
            "{}",
            "[1, 2]",
            "[]",
            '{"add": [], "drop": []}',
        ),
        *('{"summary": ""}', '{"summary": null, "topics": ["a"]}', '{"summary": 7}', '{"topics": ["a"]}'),
        *('{"summary": "They m', '```json\n{"summary": "They met", "topics": ["a",\n```', "[" * 5_000),
    ],
)
def test_what_is_no_answer_is_refused(answer: str) -> None:
    with pytest.raises(InvalidModelAnswer):
        archive_from(answer)


def test_long_lists_are_bounded() -> None:
    found = archive_from(
        json.dumps({"summary": "x", "topics": [f"t{n}" for n in range(500)], "decisions": ["d" * 9_000]})
    )
    assert len(found.topics) == MOST
    assert len(found.decisions[0]) == LONGEST


@given(st.text() | st.text(alphabet='{}[]":,#*-\n SUMARYTOPICS1', max_size=300))
def test_any_answer_is_read_or_refused(answer: str) -> None:
    try:
        found = archive_from(answer)
    except InvalidModelAnswer:
        return
    texts = [found.summary, *found.topics, *found.entities, *found.decisions, *found.questions]
    json.dumps(texts, ensure_ascii=False).encode()
    assert all(text.strip() for text in texts)
    assert not any("\0" in text for text in texts)


@pytest.mark.slow
def test_a_long_entry_is_read_in_linear_time() -> None:
    def read(text: str) -> None:
        archive_from(f"## SUMMARY\nx\n## DECISIONS\n- a\n{text}")

    assert growth(read, " word\n" * 20) < 2 * TIMES


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["{", '{"', '{"a', "#", "# ", "**", "- ", "Summary ", "open ", "(", "[", ",", " ", "No "]
)
def test_a_long_answer_is_read_in_linear_time(piece: str) -> None:
    def read(text: str) -> None:
        with contextlib.suppress(InvalidModelAnswer):
            archive_from(f"## SUMMARY\n{text}")

    assert growth(read, piece) < 2 * TIMES
