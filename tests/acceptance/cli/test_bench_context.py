"""`hitherto bench context`: the figures are those that can be counted by hand, and the data sets' reach the bars."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.commands import Ran, bare
from tests.conftest import SHARED

SPEAKERS = ("User", "Assistant")
FILLER = "Nothing of note was said on that day, by nobody at all, for the weather was as it always is there."


def talk(speakers: tuple[str, str] = SPEAKERS) -> list[dict[str, Any]]:
    """Forty messages, of which the first and the last answer a question each."""
    said = [FILLER, "The lighthouse lamp is violet.", *[FILLER] * 37, "The kayak is blue."]
    turns = [{"speaker": speakers[at % 2], "dia_id": f"D1:{at + 1}", "text": text} for at, text in enumerate(said)]
    return [
        {
            "sample_id": "harbor",
            "conversation": {"speaker_a": speakers[0], "speaker_b": speakers[1], "session_1": turns},
            "qa": [
                {"question": "lighthouse?", "answer": "…", "evidence": ["D1:2"], "category": 1},
                {"question": "kayak?", "answer": "…", "evidence": ["D1:40"], "category": 2},
                {"question": "lighthouse kayak?", "answer": "…", "evidence": ["D1:2", "D1:40"], "category": 2},
            ],
        }
    ]


def bench(file: Path, *words: str | Path) -> Ran:
    return bare("bench", "context", file, "--embedder", "none", *words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(talk()))
    return path


def figures(ran: Ran) -> dict[str, Any]:
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.json


def test_figures_that_can_be_counted_by_hand(file: Path) -> None:
    found = figures(bench(file, "--budget", "300,5000", "--policy", "none", "--no-recall", "--json"))
    assert (found["questions"], found["messages"], found["conversations"]) == (3, 40, 1)
    # Without recall the newest message is shown and the second is not, unless all is.
    assert found["budgets"]["300"]["evidence"] == pytest.approx(50, abs=0.001)
    assert found["budgets"]["300"]["by_category"] == {
        "1": {"questions": 1, "evidence": 0},
        "2": {"questions": 2, "evidence": 75},
    }
    assert found["budgets"]["5000"]["evidence"] == 100
    assert found["budgets"]["300"]["tokens"] <= 300
    assert found["budgets"]["300"]["repeated"] == 100
    assert 0 < found["context_ms"]["p50"] <= found["context_ms"]["p95"]


def test_the_picture(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    ran = bench(file, "--budget", "300,5000", "--policy", "none", "--no-recall", "--plot", path, "--json")
    assert figures(ran)["questions"] == 3
    drawn = path.read_text()
    for text in ("talk.json: evidence shown, by category", "300 tokens", "5,000 tokens", "all", "75.0", "100.0"):
        assert f"<!-- {text} -->" in drawn, text
    assert "ends in .png, .svg, .pdf" in bench(file, "--plot", "out.gif").failed(2)


def test_a_message_counts_by_what_is_shown_of_it(tmp_path: Path) -> None:
    samples = talk()
    long = "\n\n".join([f"{FILLER} " * 7] * 6 + ["The lighthouse lamp is violet. " * 20] + [f"{FILLER} " * 7] * 6)
    samples[0]["conversation"]["session_1"][1]["text"] = long
    path = tmp_path / "long.json"
    path.write_text(json.dumps(samples))
    found = figures(bench(path, "--budget", "700", "--policy", "none", "--recall", "--json"))
    assert 0 < found["budgets"]["700"]["by_category"]["1"]["evidence"] < 50


def test_sessions_are_conversations_of_their_own(tmp_path: Path) -> None:
    """Asked in a new conversation: what is recalled from the sessions, and what from those of somebody else."""
    (harbor,) = talk()
    turns = harbor["conversation"].pop("session_1")
    harbor["conversation"] |= {"session_1": turns[:20], "session_2": turns[20:]}
    (farm,) = talk()
    farm["sample_id"] = "farm"
    for turn in farm["conversation"]["session_1"]:
        turn["text"] = FILLER
    path = tmp_path / "sessions.json"
    path.write_text(json.dumps([harbor, farm]))
    without = figures(bench(path, "--sessions", "--no-recall", "--budget", "5000", "--json"))
    assert without["budgets"]["5000"]["evidence"] == 0
    found = figures(bench(path, "--sessions", "--recall", "--budget", "5000", "--json"))["budgets"]["5000"]
    harbors = found["by_category"]["1"]["evidence"], found["by_category"]["2"]["evidence"]
    assert harbors == (pytest.approx(50), pytest.approx(50)), "half of the questions are about the farm"
    assert found["recalled"] > 0
    assert found["recalled_elsewhere"] > 0
    beside = figures(bench(path, "--beside", "1", "--no-names", "--no-recall", "--budget", "5000", "--json"))
    assert (beside["budgets"]["5000"]["evidence"], beside["budgets"]["5000"]["recalled_elsewhere"]) == (100, None)
    assert bench(path, "--beside", "2").code == 2


def test_people_get_a_table(file: Path) -> None:
    ran = bench(file, "--budget", "300", "--policy", "none", "--recall")
    assert ran.code == 0
    assert "Evidence shown in talk.json: 3 questions, policy none" in ran.out
    assert "100.0%" in ran.out


@pytest.mark.parametrize(
    "words", [("--budget", "0"), ("--budget", "many"), ("--policy", "nothing"), ("--questions", "0")]
)
def test_wrong_usage(file: Path, words: tuple[str, str]) -> None:
    assert bench(file, *words).code == 2


def first(count: int, name: str, to: Path) -> Path:
    """A file with the first `count` conversations of a data set."""
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{name} beside the project")
    to.write_text(json.dumps(json.loads(path.read_bytes())[:count]))
    return to


@pytest.mark.parametrize(
    ("name", "count", "bars"),
    [("locomo/locomo10.json", 5, {"2000": 82, "8000": 91}), ("beam/beam100k.json", 7, {"8000": 55, "16000": 62})],
)
def test_evidence_on_conversations_of_people_and_of_agents(
    name: str, count: int, bars: dict[str, float], tmp_path: Path
) -> None:
    """The bars, with some of the conversations and of their questions."""
    words = ("--budget", ",".join(bars), "--policy", "none", "--recall", "--questions", "120", "--json")
    file = first(count, name, tmp_path / "some.json")
    found = figures(bare("bench", "context", file, *words))
    assert (found["questions"], found["conversations"]) == (120, count)
    for budget, bar in bars.items():
        assert found["budgets"][budget]["evidence"] >= bar
        assert found["budgets"][budget]["repeated"] >= 99
