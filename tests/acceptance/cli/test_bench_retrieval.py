"""`hitherto bench retrieval`: the figures are those that can be counted by hand, and LoCoMo's reach the bars."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitherto
from hitherto.cli.bench import questions
from hitherto.cli.bench.retrieval import SearchIn, measure, quantile
from hitherto.errors import InvalidTranscript
from tests.acceptance.cli.commands import Cli, Ran, bare
from tests.patience import PATIENCE
from tests.providers.models.endpoint import Answer, Endpoint

WORDS = ("--embedder", "none")
"""Only words are compared: what is found is plain to see."""


def turn(name: str, speaker: str, text: str, **more: str) -> dict[str, str]:
    return {"speaker": speaker, "dia_id": name, "text": text, **more}


def talks() -> list[dict[str, Any]]:
    """Two conversations. What the questions ask for is in single words that nothing else has."""
    return [
        {
            "sample_id": "harbour",
            "conversation": {
                "speaker_a": "Ødegård, Åse 🦉",
                "speaker_b": "王小明",
                "session_1_date_time": "9:04 am on 3 March, 2024",
                "session_1": [
                    turn("D1:1", "Ødegård, Åse 🦉", "The lighthouse lamp broke."),
                    turn("D1:2", "王小明", "Ok."),
                    turn("D1:3", "Ødegård, Åse 🦉", "Yes."),
                    turn("D1:4", "王小明", "Right."),
                    turn("D1:5", "Ødegård, Åse 🦉", "Look.", blip_caption="a violet kayak", query="marzipan"),
                ],
                "session_2": [
                    turn("D2:1", "王小明", "Hm."),
                    turn("D2:2", "王小明", "So."),
                    turn("D2:3", "Ødegård, Åse 🦉", "The lighthouse opened again."),
                ],
            },
            "qa": [
                # Its two pieces of evidence are all that has the word.
                {"question": "lighthouse?", "answer": "…", "evidence": ["D1:1", "D2:3"], "category": 7},
                # One of two, and a third that does not exist and counts for nothing.
                {"question": "kayak?", "answer": "…", "evidence": ["D1:5; D1:3", "D9:9"], "category": "7"},
                # Nowhere near.
                {"question": "lamp?", "answer": "…", "evidence": ["D02:02"], "category": -1},
                # Without a category.
                {"question": "violet?", "answer": "…", "evidence": "D1:5"},
                # Nobody can be asked for this.
                {"question": "kayak?", "adversarial_answer": "red", "evidence": ["D1:5"], "category": 5},
                # No evidence that exists: not counted.
                {"question": "lamp?", "answer": "…", "evidence": ["D9:1", "D", "D:1:1", "1:1"], "category": 7},
                {"question": "lamp?", "answer": "…", "evidence": [], "category": 8},
                {"question": "lamp?", "answer": "…", "category": 8},
            ],
        },
        {
            "sample_id": "orchard",
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Ben",
                "session_1": [turn("D1:1", "Ann", "A lighthouse, a lighthouse, a lighthouse! lighthouse!")],
            },
        },
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "talks.json", talks())


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def figures(ran: Ran) -> dict[str, Any]:
    """The JSON, without what depends on the machine."""
    assert (ran.code, ran.err) == (0, ""), ran
    found = ran.json
    query_ms, seconds = found.pop("query_ms"), found.pop("index_seconds")
    assert set(query_ms) == {"p50", "p95"}
    assert 0 < query_ms["p50"] <= query_ms["p95"]
    assert seconds > 0
    return found


def bench(file: Path, *words: str | Path, **settings: str) -> Ran:
    return bare("bench", "retrieval", file, *words, **settings)


def test_figures_that_can_be_counted_by_hand(file: Path) -> None:
    found = figures(bench(file, "--json", "--k", "1,2,8", *WORDS))
    counted = {"1": (1 / 2 + 1 / 2 + 0 + 1) / 4, "2": (1 + 1 / 2 + 0 + 1) / 4}
    tokens = found.pop("tokens_at_k")
    assert found["recall"].pop("8") >= counted["2"]
    assert found["recall"] == pytest.approx(counted)
    by_category = found["by_category"]
    assert {name: one["questions"] for name, one in by_category.items()} == {"-1": 1, "5": 1, "7": 2, "none": 1}
    assert list(by_category) == ["-1", "5", "7", "none"]
    assert [by_category["7"]["recall"][k] for k in ("1", "2")] == [0.5, 0.75]
    assert by_category["none"]["recall"]["1"] == 1.0
    assert by_category["5"]["recall"]["1"] == 1.0, "it is asked, and left out of the total"
    assert found == {
        "questions": 4,
        "recall": found["recall"],
        "by_category": by_category,
        "scope": "conversation",
        "conversations": 2,
        "messages": 9,
        "embedder": None,
        "missing": [],
    }
    assert 0 < tokens["1"] < tokens["2"] <= tokens["8"]


def test_the_picture(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    figures(bench(file, "--json", "--k", "1,2", "--plot", path, *WORDS))
    drawn = path.read_text()
    for text in (f"{file.name}: evidence found, by category", "among the best 2", "all", "50.0", "62.5"):
        assert f"<!-- {text} -->" in drawn, text


def test_over_all_conversations_others_can_come_first(file: Path) -> None:
    """The other conversation has the word four times over: it takes the first place."""
    own = figures(bench(file, "--json", "--k", "2", *WORDS))
    found = figures(bench(file, "--json", "--k", "2", "--scope", "all", *WORDS))
    assert found["scope"] == "all"
    assert own["recall"]["2"] - found["recall"]["2"] == pytest.approx(1 / 2 / 4)


def test_the_annotators_query_is_never_read(file: Path, tmp_path: Path) -> None:
    """A picture counts by its caption; `query` may say what it will, the answer itself or nothing at all."""
    plain, telling = talks(), talks()
    for one in plain[0]["conversation"]["session_1"]:
        one.pop("query", None)
    for name, session in telling[0]["conversation"].items():
        if name.startswith("session_") and isinstance(session, list):
            for one in session:
                one["query"] = "lighthouse lamp kayak violet marzipan"
    asks = {"question": "marzipan?", "answer": "…", "evidence": ["D1:5"], "category": 3}
    for one in (plain, telling):
        one[0]["qa"].append(asks)
    results = [
        figures(bench(written(tmp_path / f"{name}.json", one), "--json", "--k", "1,3,8"))
        for name, one in (("plain", plain), ("telling", telling))
    ]
    assert results[0] == results[1]
    words = figures(bench(tmp_path / "telling.json", "--json", *WORDS))
    assert words["by_category"]["3"]["recall"] == {"5": 0, "10": 0, "20": 0, "30": 0}


def test_people_get_a_table(file: Path) -> None:
    ran = bench(file, "--k", "2,1", *WORDS)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert "4 questions, each within its conversation" in ran.out
    assert ["category", "questions", "@1", "@2"] in lines
    assert ["7", "2", "50.0%", "75.0%"] in lines
    assert ["5", "*", "1", "100.0%", "100.0%"] in lines
    assert ["all", "4", "50.0%", "62.5%"] in lines
    assert "* 1 questions are adversarial" in ran.out
    assert "Only words were compared." in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


# --------------------------------------------------------------------------------------------- what is no such file


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no LoCoMo file"),
        ('{"role": "user", "content": "hello"}\n', "no LoCoMo file"),
        ('[{"conversation": {}}]', "speaker_a and speaker_b"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "talks.json"
    path.write_text(content)
    with pytest.raises(InvalidTranscript, match=re.escape(why)) as raised:
        questions.load(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"qa": None}, "nothing to measure"),
        ({"qa": []}, "nothing to measure"),
        ({"qa": {"question": "q"}}, "qa is not a list"),
        ({"qa": ["what?"]}, "question 1 of qa"),
        ({"qa": [{"evidence": ["D1:1"]}]}, "question 1 of qa"),
        ({"qa": [{"question": 4, "evidence": ["D1:1"]}]}, "question 1 of qa"),
        ({"qa": [{"question": "q", "evidence": ["D1:1"], "category": "easy"}]}, "the category 'easy'"),
        ({"qa": [{"question": "q", "evidence": ["D1:1"], "category": 1.5}]}, "the category 1.5"),
        ({"qa": [{"question": "q", "evidence": ["D1:1"], "category": True}]}, "the category True"),
        ({"qa": [{"question": "q", "evidence": ["D7:1"]}]}, "nothing to measure"),
        ({"sample_id": ""}, "conversation"),
        ({"twice": True}, "two messages with the dia_id D1:1"),
        ({"speaker": 7}, "its speaker is 7"),
    ],
)
def test_what_is_wrong_with_a_conversation_is_told(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    one = talks()[0]
    for name, value in change.items():
        if name == "twice":
            one["conversation"]["session_2"][1]["dia_id"] = "D01:1"
        elif name == "speaker":
            one["conversation"]["session_2"][1]["speaker"] = value
        else:
            one[name] = value
    path = written(tmp_path / "talks.json", [one])
    with pytest.raises(InvalidTranscript, match=re.escape(why)) as raised:
        questions.load(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("words", [("--k", "0"), ("--k", ""), ("--k", "5,x"), ("--k", "1001"), ("--scope", "user")])
def test_wrong_usage(file: Path, words: tuple[str, str]) -> None:
    assert bench(file, *words).failed(2)


@given(st.text(), st.text(max_size=300))
def test_any_speaker_and_any_text(speaker: str, text: str) -> None:
    """Whatever a speaker is called, even by half of a surrogate pair, and whatever is asked."""
    sample = {
        "sample_id": "talk",
        "conversation": {
            "speaker_a": speaker,
            "speaker_b": speaker + "!",
            "session_1": [turn("D1:1", speaker, text), turn("D1:2", "a third", "Hello.")],
        },
        "qa": [{"question": text, "evidence": ["D1:1"]}],
    }
    with tempfile.TemporaryDirectory() as folder:
        (one,) = questions.load(written(Path(folder) / "talks.json", [sample]))
    assert [json.loads(message.raw)["name"] for message in one.transcript.messages] == [speaker, "a third"]
    assert [question.evidence for question in one.questions] == [frozenset({0})]


@given(st.lists(st.floats(0, 1_000), min_size=1, max_size=50), st.sampled_from([0.01, 0.5, 0.95, 1.0]))
def test_a_quantile_is_the_least_value_that_covers_its_share(values: list[float], share: float) -> None:
    found = quantile(values, share)
    assert found in values
    assert sum(one <= found for one in values) >= share * len(values) - 1e-9
    assert sum(one < found for one in values) < share * len(values) + 1e-9


# ------------------------------------------------------------------------------------------- where it measures


def test_nothing_is_measured_in_somebodys_database(file: Path, tmp_path: Path) -> None:
    settings = {"HITHERTO_DATABASE": "postgresql://nobody@127.0.0.1:9/none"}
    ran = Cli(tmp_path / "home")("bench", "retrieval", file, "--json", "--k", "1,2,8", **settings)
    assert figures(ran)["questions"] == 4
    assert not (tmp_path / "home").exists()


def test_ctrl_c(file: Path) -> None:
    with Endpoint(Answer(silent=True), path="/v1/embeddings") as endpoint:
        settings = {
            "HITHERTO_EMBEDDER": "small",
            "HITHERTO_EMBEDDER_BASE_URL": endpoint.url,
            "HITHERTO_EMBEDDER_DIMENSIONS": "64",
        }
        with subprocess.Popen(
            bare.command("bench", "retrieval", file),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=bare.surroundings(**settings),
        ) as running:
            assert endpoint.reached.wait(PATIENCE), "the index is being filled"
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == (130, "", "hitherto: interrupted\n")


# ---------------------------------------------------------------------------------------------------------- LoCoMo


def test_locomo_within_the_conversations(locomo: Path, tmp_path: Path) -> None:
    """The bars, with four conversations and every third question, through the command and a PostgreSQL of its own."""
    samples = json.loads(locomo.read_bytes())[:4]
    for one in samples:
        one["qa"] = one["qa"][::3]
    ran = bare("bench", "retrieval", written(tmp_path / "third.json", samples), "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    counts = {name: one["questions"] for name, one in found["by_category"].items()}
    assert (found["messages"], found["conversations"], found["missing"]) == (2_080, 4, [])
    assert found["recall"]["10"] >= 0.775
    assert found["recall"]["30"] >= 0.82
    kept = [name for name in counts if name != "5"]
    for k, value in found["recall"].items():
        mean = sum(found["by_category"][name]["recall"][k] * counts[name] for name in kept) / found["questions"]
        assert value == pytest.approx(mean, abs=1e-5)
    assert list(found["recall"].values()) == sorted(found["recall"].values())


async def test_locomo_over_all_conversations(locomo: Path) -> None:
    """Every third question."""
    asked = [
        replace(one, questions=tuple(q for q in one.questions if not q.adversarial)[::3])
        for one in questions.load(locomo)
    ]
    async with hitherto.open("memory:", worker=False) as memory:
        found = await measure(memory, asked, ks=[10, 30], search_in=SearchIn.ALL)
    assert len(found.counted) == 514
    assert found.recall(found.counted)[10] >= 0.74
    assert found.index_seconds > 0
