"""`hitherto bench work`: a small transcript, whose figures can be counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.commands import Ran, bare
from tests.conftest import SHARED


def calls(number: int, **arguments: object) -> dict[str, Any]:
    function = {"name": "look", "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


TALK = [
    {"role": "system", "content": "Never name a price."},
    {"role": "user", "content": "What is in the box violet-17?"},
    calls(1, box="violet-17", depth=250),
    result(1, "Inside is heron-42. " + "Nothing else of note. " * 40),
    calls(2, box="heron-42"),
    result(2, "empty"),
    {"role": "assistant", "content": "Nothing."},
]


def bench(*words: str | Path) -> Ran:
    return bare("bench", "work", *words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps([TALK, TALK]))
    return path


def test_figures_that_can_be_counted_by_hand(file: Path) -> None:
    ran = bench(file, "--budget", "5000", "--budget", "5", "--policy", "none", "--limit", "1", "--json")
    assert (ran.code, ran.err) == (0, ""), ran
    assert (ran.json["conversations"], ran.json["messages"], ran.json["wire"]) == (1, 7, "openai.chat")
    small, large = ran.json["results"]
    shown = {"rules": 1, "rules_begin": 1, "words": 1, "task": 1, "values": 1}
    assert large.items() >= {"policy": "none", "budget": 5_000, "requests": 3, "refused": 0, "unacceptable": 0}.items()
    assert large["too_large"] == 0
    assert large.items() >= shown.items()
    assert large["counted"] == {"rules": 3, "rules_begin": 3, "words": 3, "task": 3, "values": 2}
    assert (large["tokens"], large["repeated"]) == (large["everything_tokens"], large["everything_repeated"])
    assert large["cost"] == {"0.5": 1, "0.1": 1}
    assert small.items() >= {"requests": 3, "refused": 3, "too_large": 3, "values": 0, "tokens": 0}.items()
    assert small["cost"] == {"0.5": None, "0.1": None}


@pytest.mark.parametrize("wire", ["openai.responses", "anthropic"])
def test_people_get_a_table_for_each_policy(file: Path, wire: str) -> None:
    ran = bench(file, file, "--budget", "5000,8000", "--policy", "none,trim", "--wire", wire)
    assert (ran.code, ran.err) == (0, ""), ran
    assert "Requests before an answer in boxes.json, boxes.json: 12 in 4 conversations" in ran.out
    assert [line.split() for line in ran.out.splitlines() if line.startswith("values that calls need")] == [
        ["values", "that", "calls", "need", "100.0%", "of", "8", "100.0%", "of", "8"]
    ] * 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--budget", "0"), 2),
        (("--policy", "nothing"), 2),
        (("--wire", "morse"), 2),
        (("--limit", "0"), 2),
        (("nowhere.json",), 1),
    ],
)
def test_wrong_usage(file: Path, words: tuple[str, ...], code: int) -> None:
    assert bench(file, *words).code == code


def test_a_conversation_that_cannot_be_read_is_told_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps([TALK, [TALK[1], result(1, "empty")], TALK]))
    ran = bench(path, "--budget", "5000", "--json")
    assert (ran.code, ran.json["conversations"], ran.json["results"][0]["requests"]) == (0, 2, 6), ran
    (why,) = ran.json["unreadable"]
    assert "boxes-1, message 2: the result of tool call 'c1'" in why
    assert "Not readable, left out: " in bench(path, "--budget", "5000").out


def test_the_tokenizer_of_the_model_counts(file: Path) -> None:
    openai, other = (bench(file, "--model", name, "--json").json for name in ("gpt-5", "claude-opus-5"))
    assert openai["model"] == "gpt-5"
    assert openai["results"][0]["tokens"] < other["results"][0]["tokens"]


def test_a_transcript_without_answers(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    path.write_text(json.dumps(TALK[1]))
    assert "nothing to measure" in bench(path).failed(1)


def test_public_transcripts_are_read() -> None:
    path = SHARED / "data" / "agents" / "airline.json"
    if not path.exists():
        pytest.skip("needs ../shared/data/agents beside the project")
    answers = sum(item["role"] == "assistant" for talk in json.loads(path.read_bytes())[:2] for item in talk)
    ran = bench(path, "--limit", "2", "--budget", "100000", "--json")
    (found,) = ran.json["results"]
    assert (found["requests"], found["refused"], found["values"], found["rules"]) == (answers, 0, 1, 1)
