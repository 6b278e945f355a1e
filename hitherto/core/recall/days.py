"""Days: the terms by which a text is found by when it was said, and the days that a question names, in English or in
numbers.

A text has a term for its day and one for its month. A question's days, "on 9 July", "last Tuesday" or "two weeks ago",
become the same terms, seen from the day on which it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice

from hitherto.core.recall.stopwords import STOP_WORDS

MOST_EXPRESSIONS = 8
"""Of a question, the first so many expressions that name days are read."""

_MOST_TERMS = 2_000
"""And no more of them than have so many terms together."""

_YEARS_BACK = 20
"""A day without a year is looked for in the year ahead and in so many years before."""

_MOST_DAYS = 31
"""Days of a range that are looked for one by one; of a longer one, its months."""


@dataclass(frozen=True, slots=True)
class NamedDays:
    """An expression that names days, from character `start` to `end` of the question. Each of `choices` has terms of
    days that may be meant: the first choice is, on which anything was said."""

    start: int
    end: int
    choices: tuple[tuple[str, ...], ...]


def day_terms(day: date) -> tuple[str, str]:
    """The terms of a text that was said on this day."""
    return day.isoformat(), _month(day.year, day.month)


def named_days(question: str, today: date) -> tuple[NamedDays, ...]:
    """The days and months that a question asks for, as they stand in it, seen from `today`. What is no day, such as
    31 February or the year 0, names none. Takes time linear in the question's length."""
    named: list[NamedDays] = []
    terms = 0
    for one in islice(_joined(question, today), MOST_EXPRESSIONS):
        terms += sum(map(len, one.choices))
        if terms > _MOST_TERMS:
            break
        named.append(one)
    return tuple(named)


def _joined(question: str, today: date) -> Iterator[NamedDays]:
    """The expressions; two with "to" between them are one range, in any written form, as are two with "and" after
    "between"."""
    first: NamedDays | None = None
    for last in _named(question, today):
        if first is not None:
            joint = question[first.end : last.start].lower()
            between = question[first.start : first.end].lower().startswith("between ")
            if (_JOINT.fullmatch(joint) or (between and joint.strip(" ") in ("and", "and the"))) and (
                choices := tuple(_through(first, last))
            ):
                yield NamedDays(first.start, last.end, choices)
                first = None
                continue
            yield first
        first = last
    if first is not None:
        yield first


def _through(first: NamedDays, last: NamedDays) -> Iterator[tuple[str, ...]]:
    """The days from each first one to the next last one, within a year. Months are not joined."""
    for start, *_ in first.choices:
        end = min((days[-1] for days in last.choices if days[-1] >= start), default="")
        with suppress(ValueError):  # a month, or no end
            days = date.fromisoformat(start), date.fromisoformat(end)
            if days[1] - days[0] <= timedelta(366):
                yield tuple(_range(*days))


def _named(question: str, today: date) -> Iterator[NamedDays]:
    for found in _EXPRESSION.finditer(question.replace("ſ", "s")):  # which it takes for an s, ignoring case
        parts = {name: text.lower() for name, text in found.groupdict().items() if text is not None}
        read = next(read for name, read in _READERS.items() if name in parts)
        choices: list[tuple[str, ...]] = []
        try:
            choices += [tuple(choice) for choice in read(parts, today)]
        except (ValueError, OverflowError):  # no such day
            continue
        if choices:
            yield NamedDays(found.start(), found.end(), tuple(choices))


_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = f"(?:{'|'.join(_WEEKDAYS)})"
_COUNTS = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
             "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
             "twentieth", "twenty-first", "twenty-second", "twenty-third", "twenty-fourth", "twenty-fifth",
             "twenty-sixth", "twenty-seventh", "twenty-eighth", "twenty-ninth", "thirtieth",
             "thirty-first")  # fmt: skip

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_NUMBER = "(?:[0-9]{1,3}|(?:a )?couple(?: of)?|(?:a )?few|an|" + "|".join(_COUNTS) + ")"
_DAY = "(?:[0-9]{1,2}(?:st|nd|rd|th)?|" + "|".join(word.replace("-", "[- ]") for word in reversed(_ORDINALS)) + ")"
_YEAR = "[12][0-9]{3}"
_THROUGH = "(?:[-–—~～〜]|to|until|till|through|bis(?: zum)?|から|부터|到|至)"
"""Between two days: they and those between them are meant."""
_TO = f" ?(?:{_THROUGH}|(?(between)and|to)) ?(?:the )?"
_JOINT = re.compile(f" ?{_THROUGH} ?(?:the )?")
_AND = "(?:, ?(?:and |or )?| and | or )(?:the )?"
_LEADING = "few further more most of only other own same such very"
_NO_NOUN = (
    rf"(?=\W*$|[?!.;,:)]| [-–—(]| (?:{'|'.join(sorted(STOP_WORDS - {*_LEADING.split()}))}|last|next)\b"
    rf"| (?:of )?{_YEAR}\b)"
)
"""Behind a number that is a day: "on the 2nd floor" has none, nor has "on May 5, 3 people came". Of the stop words, a
noun may follow those of `_LEADING`."""
_DAY_BEHIND = rf"(?= (?:the )?(?:[0-9]{{1,2}}(?:st|nd|rd|th)\b|{_DAY}(?: ?{_THROUGH} ?(?:the )?{_DAY})?{_NO_NOUN}))"
_NO_VERB = r"(?-i:(?<!may)(?<!march))"
_OF_VERBS = (
    "again also be discuss do get have just let mention not now once recall remember remind say so talk tell then"
)
_NO_OTHER_VERB = rf"(?:{_NO_VERB}|(?! (?:{'|'.join(_OF_VERBS.split())})\b){_NO_NOUN})"
"""Behind a month: "10 may be enough" and "this may help" have none."""
_IN = "in|during|of|since|until|throughout"
_IN_WHICH = "last|this|past|early|late|mid"
_LAST = "last|past|previous"
_PATTERNS = (
    r"(?P<iso>(?P<iso_year>[0-9]{4})[-/](?P<iso_month>[0-9]{2})(?:[-/](?P<iso_day>[0-9]{2}))?(?![\w/-]))",
    rf"(?P<numbers>(?:(?P<from_one>[0-9]{{1,2}})\. ?{_THROUGH} ?(?=[0-9]{{1,2}}\.))?"
    r"(?P<one>[0-9]{1,2})(?P<mark>[./]) ?(?P<two>[0-9]{1,2})"
    rf"(?:(?P=mark) ?(?P<number_year>{_YEAR}|[0-9]{{2}})(?![\w/]|\.[0-9])|\.(?![0-9])))",
    rf"(?P<day_first>(?(between)|(?P<days_before>(?:{_DAY}{_AND}){{1,5}})?)(?P<from_day>{_DAY})\.?"
    rf"(?:{_TO}(?P<to_day>{_DAY})\.?)? (?P<of>of )?(?P<day_month>{_MONTH})\b{_NO_OTHER_VERB}\.?"
    rf"(?:,? (?:of )?(?P<day_year>{_YEAR})(?!\w))?)",
    rf"(?P<month_first>(?P<first_month>{_MONTH})\b(?:{_NO_VERB}|{_DAY_BEHIND})\.? (?:the )?(?P<first_from>{_DAY})(?!\w)"
    rf"(?:{_TO}(?P<first_to>{_DAY})(?!\w))?(?P<days_behind>(?:{_AND}{_DAY}(?!\w)){{1,5}}+{_NO_NOUN})?"
    rf"(?:,? (?:of )?(?P<first_year>{_YEAR})(?!\w))?)",
    rf"(?P<month_year>(?P<month_of_year>{_MONTH})\b\.?,? (?:of )?(?P<year_of_month>{_YEAR})(?!\w))",
    rf"(?P<bare_month>(?:(?P<in>{_IN})|{_IN_WHICH})[ -](?:early |late |mid[- ])?(?P<bare>{_MONTH})\b"
    rf"(?!{_DAY_BEHIND})(?(in)|{_NO_OTHER_VERB})(?:,? (?P<bare_year>{_YEAR})(?!\w))?)",
    r"(?P<near_day>today|tonight|this (?:morning|afternoon|evening)|(?:day before )?yesterday|last night)\b",
    rf"(?P<ago>(?P<ago_count>{_NUMBER}) (?P<ago_unit>day|week|month)s? (?:ago|earlier|back))\b",
    rf"(?P<span>(?:{_LAST}) (?P<span_count>{_NUMBER}) (?P<span_unit>day|week|month)s?)\b",
    rf"(?P<period>(?:(?P<which>{_LAST}|this) )?(?P<unit>week(?:end)?|month)(?(which)| before last))\b",
    # Only with digits: "on the first try" has no day.
    r"(?P<bare_day>(?(weekday_before)|(?(between)|(?:(?<=\bon the )|(?<=\bfrom the ))))"
    r"(?P<days_alone>[0-9]{1,2}(?:st|nd|rd|th)\b"
    rf"(?>{_TO}[0-9]{{1,2}}(?:st|nd|rd|th)\b|(?:{_AND}[0-9]{{1,2}}(?:st|nd|rd|th)\b){{0,5}}))"
    rf"(?(weekday_before)(?! of\b)|{_NO_NOUN}))",
)
_EAST_ASIAN = (  # between letters, as there are no spaces
    r"(?<![0-9０-９])(?P<east_asian>(?:(?P<east_year>[0-9０-９]{4})\s?[年년]\s?)?"
    r"(?P<east_month>[0-9０-９]{1,2})\s?[月월]\s?(?P<east_day>[0-9０-９]{1,2})\s?[日号號일]"
    rf"(?:\s?(?P<east_joint>{_THROUGH}|[、・와과和と])\s?(?P<east_last>[0-9０-９]{{1,2}})\s?[日号號일](?![間间간]))?)"
)
_WEEKDAYS_BEHIND = rf"(?:{_AND}(?:on )?{_WEEKDAY}\b){{1,6}}"
_OF_A_WEEK = rf"(?=,? (?:of )?(?:the )?(?:(?:{_LAST}|this|{_NUMBER}) )?weeks?\b)"
_EXPRESSION = re.compile(
    rf"{_EAST_ASIAN}|"
    r"(?:(?<![\w.,/:-])|(?<=\.-))\b(?P<between>between (?:the )?)?(?:"
    rf"(?:(?:(?:{_LAST}|this|on|the|from) )?(?P<weekday_before>{_WEEKDAY}"
    rf"(?:{_TO}{_WEEKDAY}\b{_OF_A_WEEK}|{_WEEKDAYS_BEHIND})?),? (?:of )?(?:the )?)?"
    rf"(?:{'|'.join(_PATTERNS)})(?:,? (?:on |from )?(?P<weekday_after>{_WEEKDAY}\b"
    rf"(?(unit)(?:{_TO}{_WEEKDAY}\b|{_WEEKDAYS_BEHIND})?)))?"
    rf"|(?P<weekday>(?:(?P<latest>{_LAST}|this|on|from) )?{_WEEKDAY}\b"
    rf"(?:(?P<to_weekday>{_TO}{_WEEKDAY}\b)|(?P<listed>{_WEEKDAYS_BEHIND}))?"
    r"(?(latest)|(?(listed)|(?(to_weekday)(?(between)|(?!))| before last\b)))))",
    re.IGNORECASE,
)


def _month(year: int, month: int) -> str:
    return f"{year:04d}-{month:02d}"


def _number_of_month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name[:3]))


def _number(text: str) -> int:
    if text[0].isdigit():
        return int(re.sub("[a-z]+", "", text))
    if text.endswith("few"):
        return 3
    if "couple" in text:
        return 2
    words = _ORDINALS if (text := text.replace(" ", "-")) in _ORDINALS else _COUNTS
    return words.index(text) + 1 if words is _ORDINALS else max(words.index("a" if text == "an" else text), 1)


def _years(today: date, year: str | None, ended: Callable[[int], bool]) -> Iterable[int]:
    """The years that may be meant, the likeliest first: the one that is named, else the latest in which it had `ended`
    by `today`, those before, and the next."""
    if year is not None:
        return [int(year) if len(year) == 4 else 2_000 + int(year)]
    latest = today.year if ended(today.year) else today.year - 1
    return [*range(latest, max(latest - _YEARS_BACK, 0), -1), latest + 1]


def _days(
    today: date, month: int, first: int, last: int, year: str | None, *, listed: str | None = None
) -> Iterator[list[str]]:
    """In each year that may be meant, the days from first to last, and those that are `listed` beside them."""
    beside = [_number(day) for day in re.findall(_DAY, listed or "")]
    for one in _years(today, year, lambda this: (this, month, first) <= (today.year, today.month, today.day)):
        days: list[str] = []
        for day in sorted({*range(first, last + 1), *beside}):
            try:
                days.append(date(one, month, day).isoformat())
            except ValueError:  # 29 February
                continue
        if days:
            yield days


def _range(first: date, last: date) -> list[str]:
    """The days from first to last, or the months of a longer range."""
    if (last - first).days < _MOST_DAYS:
        return [(first + timedelta(days)).isoformat() for days in range((last - first).days + 1)]
    months = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
    return [_month(number // 12, number % 12 + 1) for number in months]


def _week(day: date) -> list[str]:
    monday = day - timedelta(day.weekday())
    return _range(monday, monday + timedelta(6))


def _back(today: date, count: int, unit: str) -> date:
    if unit != "month":
        return today - timedelta(count * (7 if unit == "week" else 1))
    number = 12 * today.year + today.month - 1 - count
    return date(number // 12, number % 12 + 1, 1)


_Choices = Iterator[Iterable[str]]


def _iso(parts: dict[str, str], today: date) -> _Choices:
    year, month, day = int(parts["iso_year"]), int(parts["iso_month"]), parts.get("iso_day")
    first = date(year, month, 1 if day is None else int(day))
    yield [_month(year, month) if day is None else first.isoformat()]


def _numbers(parts: dict[str, str], today: date) -> _Choices:
    """ "9.7." is a day and a month; "9/7/2026" either is."""
    one, two, year = int(parts["one"]), int(parts["two"]), parts.get("number_year")
    if parts["mark"] == "/" and year is None:
        return
    if parts["mark"] == "." or two > 12:
        one, two = (one, two) if parts["mark"] == "." else (two, one)
        if two <= 12:
            yield from _days(today, two, int(parts.get("from_one", one)), one, year)
        return
    found = [*_days(today, two, one, one, year)]
    if one <= 12:
        found += _days(today, one, two, two, year)
    yield [day for days in found for day in days]


def _east_asian(parts: dict[str, str], today: date) -> _Choices:
    month, day = int(parts["east_month"]), int(parts["east_day"])
    last = max(day, int(parts.get("east_last", day)))
    through = last if re.fullmatch(_THROUGH, parts.get("east_joint", "")) else day
    yield from _days(today, month, day, through, parts.get("east_year"), listed=str(last))


def _day_first(parts: dict[str, str], today: date) -> _Choices:
    first = _number(parts["from_day"])
    last = _number(parts.get("to_day", parts["from_day"]))
    if "of" not in parts and not parts.get("to_day", parts["from_day"])[0].isdigit():
        return  # "the second March concert"
    month, year = _number_of_month(parts["day_month"]), parts.get("day_year")
    yield from _days(today, month, first, last, year, listed=parts.get("days_before"))


def _month_first(parts: dict[str, str], today: date) -> _Choices:
    first = _number(parts["first_from"])
    last = _number(parts.get("first_to", parts["first_from"]))
    month, year = _number_of_month(parts["first_month"]), parts.get("first_year")
    yield from _days(today, month, first, last, year, listed=parts.get("days_behind"))


def _month_year(parts: dict[str, str], today: date) -> _Choices:
    yield [_month(int(parts["year_of_month"]), _number_of_month(parts["month_of_year"]))]


def _bare_month(parts: dict[str, str], today: date) -> _Choices:
    month = _number_of_month(parts["bare"])
    for year in _years(today, parts.get("bare_year"), lambda this: (this, month) <= (today.year, today.month)):
        yield [_month(year, month)]


def _near_day(parts: dict[str, str], today: date) -> _Choices:
    words = parts["near_day"]
    back = 2 if "before" in words else 1 if words in ("yesterday", "last night") else 0
    yield [(today - timedelta(back)).isoformat()]


def _bare_day(parts: dict[str, str], today: date) -> _Choices:
    """The latest such days of a month, or those of one of the eleven months before."""
    days = [_number(day) for day in re.findall(_DAY, parts["days_alone"])]
    if _is_range(parts["days_alone"], parts):
        days = [*range(days[0], days[-1] + 1)]
    for back in range(1 if max(days) > today.day else 0, 12):
        with suppress(ValueError):  # 31 June
            yield [_back(today, back, "month").replace(day=day).isoformat() for day in days]


def _of_weekday(days: list[str], parts: dict[str, str]) -> list[str]:
    """Those of the days that are a weekday beside them; without such, all."""
    beside = parts.get("weekday_before") or parts.get("weekday_after") or ""
    named = [_WEEKDAYS.index(weekday) for weekday in re.findall(_WEEKDAY, beside)]
    if len(named) == 2 and _is_range(beside, parts):
        named = [(named[0] + more) % 7 for more in range((named[1] - named[0]) % 7 + 1)]
    return [day for day in days if date.fromisoformat(day).weekday() in named] or days


def _is_range(days: str, parts: dict[str, str]) -> bool:
    """Whether those between the first and the last are meant too."""
    return "between" in parts or re.search(_AND, days) is None


def _ago(parts: dict[str, str], today: date) -> _Choices:
    """The day so long ago, or the days around it, as a week or a month is not meant to the day. With a weekday, that
    of the week."""
    count, unit = _number(parts["ago_count"]), parts["ago_unit"]
    day = _back(today, count, unit)
    if unit == "month":
        yield [_month(day.year, day.month)]
    elif unit == "week" and ("weekday_before" in parts or "weekday_after" in parts):
        yield _of_weekday(_week(day), parts)
    else:
        yield [day.isoformat()]
        around = timedelta(3 if unit == "week" else 1)
        yield _range(day - around, day + around)


def _span(parts: dict[str, str], today: date) -> _Choices:
    yield _range(_back(today, _number(parts["span_count"]), parts["span_unit"]), today)


def _period(parts: dict[str, str], today: date) -> _Choices:
    this, unit = parts.get("which") == "this", parts["unit"]
    if "which" not in parts:  # "The week before last" is the last one, seen from a week ago.
        today = _back(today, 1, unit.removesuffix("end"))
    if unit == "month":
        day = _back(today, 0 if this else 1, "month")
        yield [_month(day.year, day.month)]
        return
    week = _week(today if this else today - timedelta(7))
    yield _of_weekday(week if unit == "week" else week[5:], parts)


def _weekday(parts: dict[str, str], today: date) -> _Choices:
    """The latest such days before today; "this Tuesday" may be today. "The Tuesday before last" is a week earlier."""
    end = today if parts["weekday"].startswith("this") else today - timedelta(1)
    if parts["weekday"].endswith("before last"):
        end -= timedelta(7)
    named = [_WEEKDAYS.index(weekday) for weekday in re.findall(_WEEKDAY, parts["weekday"])]
    if "to_weekday" in parts:
        last = _latest(named[1], end)
        yield _range(_latest(named[0], last), last)
    else:
        yield sorted(_latest(weekday, end).isoformat() for weekday in named)


def _latest(weekday: int, day: date) -> date:
    """The latest such weekday that is not after the day."""
    return day - timedelta((day.weekday() - weekday) % 7)


_READERS: dict[str, Callable[[dict[str, str], date], _Choices]] = {
    "iso": _iso,
    "numbers": _numbers,
    "east_asian": _east_asian,
    "day_first": _day_first,
    "month_first": _month_first,
    "month_year": _month_year,
    "bare_month": _bare_month,
    "near_day": _near_day,
    "ago": _ago,
    "span": _span,
    "period": _period,
    "bare_day": _bare_day,
    "weekday": _weekday,
}
