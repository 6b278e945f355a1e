"""Days: which of them a question names, and the terms by which what was said then is found."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.recall.days import MOST_EXPRESSIONS, day_terms, named_days
from hitherto.core.recall.terms import analyzed, question_terms

TODAY = date(2026, 7, 15)  # a Wednesday


def likeliest(question: str, today: date = TODAY) -> list[str]:
    """The first choice of each expression, a range as its ends."""
    return [
        f"{one.choices[0][0]}…{one.choices[0][-1]}" if len(one.choices[0]) > 2 else " ".join(one.choices[0])
        for one in named_days(question, today)
    ]


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What did I do on 9 July?", "2026-07-09"),
        ("What did I do on 9 ſept?", "2025-09-09"),
        ("What did I do on July 9th, again?", "2026-07-09"),
        ("What did I do on the ninth of July?", "2026-07-09"),
        ("What about the twenty-first of March 2025?", "2025-03-21"),
        ("What did I do on Jul. 9?", "2026-07-09"),
        ("What did I do on 9.7.?", "2026-07-09"),
        ("and on 9.7.2025?", "2025-07-09"),
        ("What did I do on 2026-07-09?", "2026-07-09"),
        ("7/13/26", "2026-07-13"),
        ("09/07/2026", "2026-07-09 2026-09-07"),
        ("我11月4日做了什么？", "2025-11-04"),
        ("２０２６年７月９日に何をしましたか", "2026-07-09"),
        ("2026년 7월 9일에 무엇을 했나요?", "2026-07-09"),
        ("July 3 to 5", "2026-07-03…2026-07-05"),
        ("from 3-5 July 2025", "2025-07-03…2025-07-05"),
        ("What was said in July 2025?", "2025-07"),
        ("What was said in May?", "2026-05"),
        ("What was said in mid-August?", "2025-08"),
        ("What did I do on 16 July?", "2025-07-16"),
        ("What did I do today?", "2026-07-15"),
        ("What did I do yesterday?", "2026-07-14"),
        ("What did I do last night?", "2026-07-14"),
        ("What did I do the day before yesterday?", "2026-07-13"),
        ("What did I do last Tuesday?", "2026-07-14"),
        ("What did I do on Wednesday?", "2026-07-08"),
        ("two weeks ago", "2026-07-01"),
        ("a couple of days ago", "2026-07-13"),
        ("an hour, or 3 months ago", "2026-04"),
        ("last month", "2026-06"),
        ("last week", "2026-07-06…2026-07-12"),
        ("last weekend", "2026-07-11 2026-07-12"),
        ("the past 10 days", "2026-07-05…2026-07-15"),
        ("the last three months", "2026-04…2026-07"),
        ("What did I do on the 17th?", "2026-06-17"),
        ("and on the 31st?", "2026-05-31"),
        ("What did we see on the 17th when we met?", "2026-06-17"),
        ("On the 17th what did I do?", "2026-06-17"),
        ("On May 5, 3 people came to dinner", "2026-05-05"),
        ("I met Anna on May 5 and 12 others", "2026-05-05"),
        ("the Tuesday before last", "2026-07-07"),
        ("What was said on the evening of November 5?", "2025-11-05"),
        ("the end of November 5th 2025 Anna came", "2025-11-05"),
        ("In July 12 people came", "2026-07"),
        ("of July 3-5", "2026-07-03…2026-07-05"),
        ("What happened in May I wonder", "2026-05"),
        ("What did I do this may?", "2026-05"),
        ("On 5 may i met Anna", "2026-05-05"),
        ("On the 14th my sister came", "2026-07-14"),
        ("What was said on the 14th about rent?", "2026-07-14"),
        ("What was in the letter of July 9 that I had?", "2026-07-09"),
        ("2026 年 7 月 9 日", "2026-07-09"),
        ("7 月 9 日に何をしましたか", "2026-07-09"),
        ("the week before last", "2026-06-29…2026-07-05"),
    ],
)
def test_a_question_names_days(question: str, days: str) -> None:
    assert likeliest(question) == [days]


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("on Tuesday, November 17", "2026-11-17"),
        ("last Tuesday, the 17th of November", "2026-11-17"),
        ("on 17 November, on Tuesday", "2026-11-17"),
        ("Tuesday the 17th", "2026-11-17"),
        ("on Tuesday last week", "2026-11-17"),
        ("last week, on Tuesday", "2026-11-17"),
        ("the Tuesday of last week", "2026-11-17"),
        ("a week ago Tuesday", "2026-11-17"),
        ("Friday two weeks ago", "2026-11-13"),
        ("on Friday the week before last", "2026-11-13"),
        ("last weekend on Sunday", "2026-11-22"),
        ("on Tuesday, on Friday", "2026-11-24 2026-11-27"),
    ],
)
def test_a_weekday_beside_a_date_adds_none_and_beside_a_week_is_of_it(question: str, days: str) -> None:
    assert " ".join(likeliest(question, date(2026, 11, 28))) == days


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("between 3 and 5 July", "2026-07-03…2026-07-05"),
        ("on 3 and 5 July", "2026-07-03 2026-07-05"),
        ("on the 3rd, 5th and 9th of May", "2026-05-03…2026-05-09"),
        ("on July 3 or the 5th, 2025", "2025-07-03 2025-07-05"),
        ("on July 3, 2025", "2025-07-03"),
        ("between July 3rd and the 5th", "2026-07-03…2026-07-05"),
        ("between 3 July and 5 July", "2026-07-03…2026-07-05"),
        ("from July 3 to July 5", "2026-07-03…2026-07-05"),
        ("from July 14 to July 16", "2026-07-14…2026-07-16"),
        ("from 30 December to 2 January", "2025-12-30…2026-01-02"),
        ("from 2026-07-03 until 2026-07-05", "2026-07-03…2026-07-05"),
        ("from last Friday to the day before yesterday", "2026-07-10…2026-07-13"),
        ("on 3 July and 5 July", "2026-07-03 2026-07-05"),
        ("on 3 and 4 July", "2026-07-03 2026-07-04"),
        ("the notes of July 3 and 4", "2026-07-03 2026-07-04"),
        ("on the 3rd and 4th", "2026-07-03 2026-07-04"),
        ("on Monday and Tuesday", "2026-07-13 2026-07-14"),
        ("What did I do Monday or Tuesday?", "2026-07-13 2026-07-14"),
        ("on Friday, Sunday and on Monday", "2026-07-10…2026-07-13"),
        ("Monday and Tuesday last week", "2026-07-06 2026-07-07"),
        ("from Friday to Monday", "2026-07-10…2026-07-13"),
        ("between Monday and Wednesday", "2026-07-06…2026-07-08"),
        ("on Monday and Tuesday the 7th", "2026-07-07"),
        ("0001-01-01 to 9999-12-31", "0001-01-01 9999-12-31"),
        ("last week on Monday and Tuesday", "2026-07-06 2026-07-07"),
        ("from Wednesday to Friday last week", "2026-07-08…2026-07-10"),
        ("Wednesday to Friday last week", "2026-07-08…2026-07-10"),
        ("between Wednesday and Friday of last week", "2026-07-08…2026-07-10"),
        ("last week from Monday to Wednesday", "2026-07-06…2026-07-08"),
        ("from Friday to Sunday two weeks ago", "2026-07-03…2026-07-05"),
        ("from the 9th to the 11th", "2026-07-09…2026-07-11"),
        ("between the 9th and the 11th", "2026-07-09…2026-07-11"),
        ("9.-11.7.", "2026-07-09…2026-07-11"),
        ("9. bis 11.7.2025", "2025-07-09…2025-07-11"),
        ("9.7. bis 11.7.", "2026-07-09…2026-07-11"),
        ("vom 9.7. bis zum 11.7.", "2026-07-09…2026-07-11"),
        ("9.7.-11.7.", "2026-07-09…2026-07-11"),
        ("2026-07-09 – 2026-07-11", "2026-07-09…2026-07-11"),
        ("July 9 through 11", "2026-07-09…2026-07-11"),
        ("7月9日から11日まで", "2026-07-09…2026-07-11"),
        ("7月9日から7月11日まで", "2026-07-09…2026-07-11"),
        ("7月9日～11日", "2026-07-09…2026-07-11"),
        ("7月9日到11日", "2026-07-09…2026-07-11"),
        ("7월 9일부터 11일까지", "2026-07-09…2026-07-11"),
        ("7月9日と11日", "2026-07-09 2026-07-11"),
        ("7月9日、10日間", "2026-07-09"),
    ],
)
def test_two_days_name_those_between_them(question: str, days: str) -> None:
    assert " ".join(likeliest(question)) == days


@pytest.mark.parametrize(
    "question",
    [
        "What did I do on 31 February?",
        "0000-01-01",
        "99999-01-01",
        "9 July 99999 and 9999999 days ago",
        "2026-13-01",
        "What is 9.7 plus 24/7?",
        "May I ask? I march on, version 1.2.3.",
        "17 apples, on the first try, between 3 and 5 o'clock",
        "What has mould on the 2nd floor? It came on the 20th anniversary.",
        "What did I do?",
        "This may be wrong, and late may help. It may 2 times.",
        "The second may be better than the first, and 10 may be enough.",
        "The second March concert, or the first march I saw",
        "I march 5 miles and may have a rest. It may 3 weeks.",
        "Give me a second: I sat in the sun on the second.",
        "on the 3rd and 4th floor, on the 2nd of my trips, on the 5th more people came",
        "Is Monday to Friday open? Monday?",
        "from the 2nd to the 3rd floor, from the 28th to the 3rd, and 3.-5. of them",
    ],
)
def test_what_is_no_day_names_none(question: str) -> None:
    assert [day for day in likeliest(question) if day != "2026-07-09"] == []


def test_without_a_year_the_latest_is_likeliest() -> None:
    (one,) = named_days("on 29 February", TODAY)
    assert one.choices[:3] == (("2024-02-29",), ("2020-02-29",), ("2016-02-29",))
    (one,) = named_days("on 20 July", TODAY)
    assert (one.choices[0], one.choices[-1]) == (("2025-07-20",), ("2026-07-20",)), "and the next comes last"


def test_the_terms_of_a_question_are_bounded() -> None:
    found = named_days("the last 999 months, " * MOST_EXPRESSIONS, TODAY)
    assert sum(len(choice) for one in found for choice in one.choices) <= 2_000


def test_a_list_has_no_day_between_its_days() -> None:
    (one,) = named_days("on the 3rd, 5th and 9th of May 2025", TODAY)
    assert one.choices == (("2025-05-03", "2025-05-05", "2025-05-09"),)


@pytest.mark.parametrize("today", [date.min, date(1, 3, 1), date.max])
def test_at_the_ends_of_time(today: date) -> None:
    for question in ("two months ago", "last week", "yesterday", "9 July", "in May", "29 February", "the last 3 weeks"):
        named_days(question, today)


WORDS = ("9", "31.", "July", "2026", "02-30", "May", "last", "week", "ago", "two", "3-5", "/7/", "of",
         "on", "999", "the", "17th", "Tuesday", "between", "and", "to", "before", "1-01-01")  # fmt: skip


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join), st.dates())
def test_any_text_on_any_day(question: str, today: date) -> None:
    found = named_days(question, today)
    assert len(found) <= MOST_EXPRESSIONS
    assert all(0 <= one.start < one.end <= len(question) and all(one.choices) for one in found)
    question_terms(question, today=today)


@pytest.mark.parametrize(
    "question",
    [
        "What did I do on 9 July?",
        "7月9日に何をしましたか？",
        "2026年7月9日は何がありましたか",
        "7月9日我做了什么？",
        "7월 9일에 무엇을 했나요?",
        "Was habe ich am 9.7. gemacht?",
        "¿Qué hice el 9/7/2026?",
        "Qu'est-ce que je t'ai dit le 9.7. ?",
        "Что я делал 9.7.2026?",
    ],
)
def test_a_question_about_a_day_alone_looks_for_nothing_else(question: str) -> None:
    asked = question_terms(question, today=TODAY)
    assert asked.of_days is not None
    assert asked.of_days.all()
    assert asked.beside_days == ""
    other = question_terms(f"{question} りんご Fahrrad", today=TODAY)
    assert other.of_days is not None
    assert not other.of_days.all()
    assert "りんご" in other.beside_days


def test_a_text_is_found_by_its_day_and_its_month() -> None:
    there = analyzed("Hello", day=date(2026, 7, 9)).hashes
    for question in ("on 9 July", "in July"):
        asked = question_terms(question, today=TODAY)
        assert np.isin(asked.hashes, there).any()
        assert not np.isin(question_terms(question).hashes, there).any(), "days are seen from one"
    assert not np.isin(question_terms("on 8 July", today=TODAY).hashes, there).any()
    assert not np.isin(question_terms(" ".join(day_terms(date(2026, 7, 9)))).words, there).any(), "apart from words"
