"""Lines for people, fields for programs, and nothing on anybody's screen."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hitherto.logs import json_lines, logger, plain_lines

NAME = "hitherto.of_these_tests"
log = logger(NAME)


@pytest.fixture
def restored() -> Iterator[None]:
    """The root logger as it was, after a process of Hitherto's own was played."""
    root, ours = logging.getLogger(), logging.getLogger("hitherto")
    before = root.handlers[:], root.level, ours.level
    root.handlers = []  # basicConfig closes what it finds
    yield
    root.handlers, level, ours_level = before
    root.setLevel(level)
    ours.setLevel(ours_level)


@pytest.fixture
def lines(restored: None) -> io.StringIO:
    stream = io.StringIO()
    json_lines(stream, level=logging.DEBUG)
    return stream


def said(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


class TestRecords:
    @pytest.fixture(autouse=True)
    def listening(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "hitherto")

    def test_the_line_is_the_message_and_fields_are_attributes(self, caplog: pytest.LogCaptureFixture) -> None:
        log.info("Summarized messages %d-%d for %s in %dms", 0, 5, "c", 12, conversation="c", tokens=7)
        (record,) = caplog.records
        assert record.getMessage() == "Summarized messages 0-5 for c in 12ms"
        assert (record.name, record.levelno) == (NAME, logging.INFO)
        assert record.msg == "Summarized messages %d-%d for %s in %dms"
        assert (vars(record)["conversation"], vars(record)["tokens"]) == ("c", 7)

    def test_a_line_without_arguments_may_have_percent_signs(self, caplog: pytest.LogCaptureFixture) -> None:
        log.warning("100% of %s", part="all")
        assert caplog.messages == ["100% of %s"]

    @pytest.mark.parametrize(
        ("level", "verb"), [("DEBUG", log.debug), ("INFO", log.info), ("WARNING", log.warning), ("ERROR", log.error)]
    )
    def test_each_level(self, caplog: pytest.LogCaptureFixture, level: str, verb: Any) -> None:
        caplog.set_level(logging.DEBUG, "hitherto")
        verb("so", n=1)
        assert [(one.levelname, one.message, vars(one)["n"]) for one in caplog.records] == [(level, "so", 1)]

    def test_an_exception_comes_along_without_its_words(self, caplog: pytest.LogCaptureFixture) -> None:
        """They may quote what was said; so may those of the exceptions that led to it."""

        class Quoted(KeyError):
            pass

        said = "".join(["Gran", "ary"])  # the lines of the program itself are shown
        try:
            try:
                raise ValueError(said)
            except ValueError as error:
                raise Quoted(said) from error
        except Quoted as error:
            error.add_note(said)
            for given in (True, error):
                log.warning("could not", exc_info=given)
            log.exception("could not")
        for record in caplog.records:
            shown = logging.Formatter().format(record)
            assert said not in shown
            assert "ValueError\n\nThe above exception was the direct cause" in shown
            assert shown.endswith("Quoted")
            assert shown.count("in test_an_exception_comes_along_without_its_words") == 2

    def test_an_exception_comes_along(self, caplog: pytest.LogCaptureFixture) -> None:
        try:
            raise KeyError("gone")
        except KeyError as error:
            log.exception("could not %s", "find it")
            log.warning("could not", exc_info=True)
            log.warning("could not", exc_info=error)
            log.warning("went on")
        exceptions = [record.exc_info and record.exc_info[0] for record in caplog.records]
        assert exceptions == [KeyError, KeyError, KeyError, None]
        assert [record.levelname for record in caplog.records][:2] == ["ERROR", "WARNING"]

    def test_fields_with_names_of_a_record_do_no_harm(self, caplog: pytest.LogCaptureFixture) -> None:
        taken = {name: 1 for name in vars(logging.makeLogRecord({})) if name not in ("exc_info", "stack_info")}
        log.info("so %d", 3, **taken, message=2, asctime=3, taskName=4, self=5, level=6)
        log.bind(name="bound", args=7).info("so")
        one, two = caplog.records
        assert (one.getMessage(), two.getMessage()) == ("so 3", "so")
        fields = vars(one)
        assert all(fields[name + "_"] == 1 for name in taken if name != "taskName")
        assert (fields["message_"], fields["asctime_"], fields["self"], fields["level"]) == (2, 3, 5, 6)
        assert (two.name, vars(two)["name_"], vars(two)["args_"]) == (NAME, "bound", 7)

    def test_bound_fields_are_on_each_line_of_that_logger_alone(self, caplog: pytest.LogCaptureFixture) -> None:
        bound = log.bind(tenant="acme")
        bound.info("one", digest=4)
        bound.info("two")
        log.info("three")
        assert [vars(record).get("tenant") for record in caplog.records] == ["acme", "acme", None]
        assert "digest" not in vars(caplog.records[1])

    def test_the_record_says_where_it_was_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        log.info("here")
        log.bind(a=1).error("here")
        log.exception("here")
        places = {(record.filename, record.funcName) for record in caplog.records}
        assert places == {("test_logs.py", "test_the_record_says_where_it_was_logged")}

    def test_what_nobody_listens_to_is_not_even_formatted(self, caplog: pytest.LogCaptureFixture) -> None:
        class Loud:
            def __str__(self) -> str:
                raise AssertionError

        log.debug("%s", Loud(), field=Loud())
        assert caplog.records == []


def test_nothing_is_printed_where_nobody_has_asked_for_it() -> None:
    program = "from hitherto.logs import logger; logger('hitherto.x').error('down %s', 1, why='so')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


class TestJson:
    def test_a_line_is_an_object(self, lines: io.StringIO) -> None:
        log.info("Memory %d status updated to %s", 3, "completed", digest=3, conversation="grüß\n\ud800")
        (line,) = said(lines)
        assert list(line) == ["time", "level", "logger", "event", "digest", "conversation"]
        assert line | {"time": ""} == {
            "time": "",
            "level": "info",
            "logger": NAME,
            "event": "Memory 3 status updated to completed",
            "digest": 3,
            "conversation": "grüß\n\ud800",
        }
        assert lines.getvalue().isascii()

    def test_the_time_is_utc(self, lines: io.StringIO) -> None:
        record = logging.makeLogRecord({"name": NAME, "msg": "then", "created": 1_780_000_000.25, "levelno": 20})
        logging.getLogger(NAME).handle(record)
        assert said(lines)[0]["time"] == "2026-05-28T20:26:40.250Z"

    def test_an_exception_is_its_last_field(self, lines: io.StringIO) -> None:
        try:
            raise KeyError("gone")
        except KeyError:
            log.exception("broken", digest=3)
        (line,) = said(lines)
        assert list(line)[-2:] == ["digest", "exception"]
        assert line["exception"].startswith("Traceback ")
        assert line["exception"].endswith("KeyError")

    def test_fields_do_not_hide_what_each_line_has(self, lines: io.StringIO) -> None:
        log.info("so", time=1, level=2, logger=3, name=4)
        (line,) = said(lines)
        assert (line["level"], line["logger"], line["event"]) == ("info", NAME, "so")
        assert [line[name] for name in ("time_", "level_", "logger_", "name_")] == [1, 2, 3, 4]

    def test_what_is_no_json_is_text(self, lines: io.StringIO) -> None:
        circle: list[object] = []
        circle.append(circle)
        log.info("so", cost=float("nan"), circle=circle, error=ValueError("bad"), names={("a", 1): 2})
        log.info("so", error=ValueError("bad"))
        one, two = said(lines)
        assert (one["cost"], one["circle"], two["error"]) == ("nan", "[[...]]", "bad")

    def test_other_libraries_are_heard_when_it_matters(self, lines: io.StringIO) -> None:
        logging.getLogger("psycopg.pool").info("a connection")
        logging.getLogger("psycopg.pool").warning("lost %s", "a connection")
        log.debug("detail")
        assert [(line["logger"], line["event"]) for line in said(lines)] == [
            ("psycopg.pool", "lost a connection"),
            (NAME, "detail"),
        ]

    def test_it_takes_the_place_of_other_handlers(self, restored: None) -> None:
        first, second = io.StringIO(), io.StringIO()
        json_lines(first)
        json_lines(second)
        log.info("once")
        assert (first.getvalue(), len(said(second))) == ("", 1)


class TestPlain:
    def test_a_line_is_for_people(self, restored: None) -> None:
        stream = io.StringIO()
        plain_lines(stream)
        logging.getLogger(NAME).handle(
            logging.makeLogRecord(
                {
                    "name": NAME,
                    "msg": "%s ends",
                    "args": ("a\nb\x1b[31m",),
                    "created": 0,
                    "levelno": 20,
                    "levelname": "INFO",
                }
            )
        )
        assert stream.getvalue() == "1970-01-01T00:00:00.000Z INFO    a\ufffdb\ufffd[31m ends\n"

    def test_a_traceback_has_lines_of_its_own(self, restored: None) -> None:
        stream = io.StringIO()
        plain_lines(stream)
        try:
            raise KeyError("gone")
        except KeyError:
            log.exception("broken")
        first, *rest = stream.getvalue().splitlines()
        assert first.endswith(" ERROR   broken")
        assert (rest[0], rest[-1]) == ("Traceback (most recent call last):", "KeyError")
