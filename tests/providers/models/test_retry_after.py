from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.providers.endpoints.retry_after import LONGEST, retry_after

NOW = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "86400"}, LONGEST),
        ({"retry-after": "9" * 400}, LONGEST),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2),
        ({"retry-after": "Wed, 01 Jul 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Wed, 01 Jul 2026 14:00:30 +0200"}, 30),
        ({"retry-after": "Thu, 02 Jul 2026 12:00:00 GMT"}, LONGEST),
        ({"retry-after": "Wed, 01 Jul 2026 09:00:05 GMT", "date": "Wed, 01 Jul 2026 09:00:00 GMT"}, 5),
        ({"retry-after": "Wed, 01 Jul 2026 12:00:30 GMT", "date": "yesterday"}, 30),
    ],
)
def test_what_an_endpoint_says(headers: dict[str, str], seconds: float):
    assert retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    "said",
    [
        "",
        "soon",
        "-1",
        "-0.5",
        "nan",
        "inf",
        "1e3",
        "1_000",
        "٣",
        "0x10",
        "Wed, 01 Jul 2026 11:59:59 GMT",
        "Wed, 99 Jul 2026",
    ],
)
def test_nonsense_and_what_has_passed_is_nothing(said: str):
    assert retry_after({"retry-after": said}, now=NOW) is None
    assert retry_after({"retry-after-ms": said}, now=NOW) is None


def test_nothing_is_nothing():
    assert retry_after({}) is None


@given(said=st.text(), date=st.text())
def test_whatever_is_said_is_a_bearable_time_or_none(said: str, date: str):
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: said, "date": date})
        assert seconds is None or 0 <= seconds <= LONGEST
