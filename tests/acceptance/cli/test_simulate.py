"""`hitherto simulate` as its users meet it, and the bars that it is to hold."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hitherto import Policy
from hitherto.core.policy.presets import PRESETS
from hitherto.simulation.composed import redact_summarize, redact_trim
from tests.acceptance.cli.commands import SUPPORT, bare, chat, written
from tests.providers.models.endpoint import Endpoint, refused
from tests.tokens.test_counters import reference_count

EXAMPLES = SUPPORT.parent
INCIDENT = EXAMPLES / "incident.jsonl"
COMPOSED = ["redact-summarize", "redact-trim"]
KEYS = {
    *("policy", "prompt_tokens", "cached_tokens", "digest_calls", "digest_tokens", "cost_usd", "max_request_tokens"),
    *("verbatim", "digested", "dropped", "redacted", "requests", "repeated", "price", "price_date"),
    *("recalled_tokens", "evidence", "evidence_recalled"),
}
FULL = "full history"
PRICES = {"date": "2026-01-31", "models": {"own": {"input": 1, "cached_input": 0.5, "output": 4, "window": 50_000}}}


def simulated(*words: str | Path, **given: str) -> dict[str, dict[str, Any]]:
    """The policies in a simulation's JSON, by name; the full history first."""
    ran = bare("simulate", *words, "--json", **given)
    assert (ran.code, ran.err) == (0, ""), ran
    assert set(ran.json) == {"policies"}
    found = {one["policy"]: one for one in ran.json["policies"]}
    assert next(iter(found)) == FULL
    for one in found.values():
        assert set(one) == KEYS
        assert one["verbatim"] + one["digested"] + one["dropped"] == pytest.approx(1, abs=0.001)
        assert 0 <= one["cached_tokens"] <= one["repeated"] * one["prompt_tokens"] + 1
    return found


def bars_held(found: dict[str, dict[str, Any]]) -> list[str]:
    """The composed policies that cost at most 30 % of the full history, with at least 60 % of their prompts from the
    cache."""
    return [
        name
        for name in COMPOSED
        if found[name]["cost_usd"] <= 0.3 * found[FULL]["cost_usd"]
        and found[name]["cached_tokens"] >= 0.6 * found[name]["prompt_tokens"]
    ]


# What it finds


def test_a_tool_heavy_transcript() -> None:
    found = simulated(INCIDENT, "--policies", f"summarize,redact,{policy_file(0)},{policy_file(1)}")
    assert bars_held(found) == COMPOSED
    assert found["redact-summarize"]["digested"] > 0.85
    assert found[FULL]["cost_usd"] == max(one["cost_usd"] for one in found.values())
    assert (
        found[FULL]["max_request_tokens"]
        > 16_000
        >= max(one["max_request_tokens"] for name, one in found.items() if name != FULL)
    )
    assert {one["evidence"] for one in found.values()} == {None}, "there are no questions about it"


def test_those_of_a_short_transcript() -> None:
    assert list(simulated(SUPPORT)) == [
        FULL,
        *(name.replace("_", "-") for name in PRESETS if name != "native"),
        *COMPOSED,
    ]


def test_the_full_history_without_any_of_our_code(locomo: Path) -> None:
    found = simulated(locomo, "--conversation", "conv-30", "--policies", "none")
    dialogue = next(one["conversation"] for one in json.loads(locomo.read_bytes()) if one["sample_id"] == "conv-30")
    size, asked, sizes = 3, False, list[int]()
    for turn in [turn for number in range(1, 100) for turn in dialogue.get(f"session_{number}", [])]:
        caption, role = turn.get("blip_caption"), "user" if turn["speaker"] == dialogue["speaker_a"] else "assistant"
        if role == "assistant" and asked:
            sizes.append(size)
        asked = role == "user"
        content = turn["text"] + (f"\n[shares a picture: {caption}]" if caption else "")
        size += 3 + reference_count("o200k_base", role) + reference_count("o200k_base", content)
    sizes += [size] if asked else []
    cached = sum((one - 3) // 128 * 128 for one in sizes[:-1] if one - 3 >= 1_024)
    full = found[FULL]
    assert (full["requests"], full["prompt_tokens"], full["cached_tokens"]) == (len(sizes), sum(sizes), cached)
    assert full["max_request_tokens"] == sizes[-1]
    assert full["cost_usd"] == pytest.approx(((sum(sizes) - cached) * 0.4 + cached * 0.1) / 1e6, abs=1e-6)


def policy_file(number: int) -> Path:
    return EXAMPLES / "policies" / f"{COMPOSED[number]}.json"


def test_the_files_of_the_composed_policies_are_what_is_simulated() -> None:
    for number, made in enumerate((redact_summarize(), redact_trim())):
        assert Policy.from_json(json.loads(policy_file(number).read_text())) == made


def test_the_policies_that_are_named_and_nothing_else() -> None:
    found = simulated(SUPPORT, "--policies", "trim:max_turns=4,keep_turns=2,none", "--policies", policy_file(1))
    assert list(found) == [FULL, "trim:max_turns=4,keep_turns=2", "none", "redact-trim"]
    assert found["trim:max_turns=4,keep_turns=2"]["dropped"] > found["none"]["dropped"] == 0


def test_prices_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(PRICES))
    listed = simulated(SUPPORT, "--policies", "none", "--price", "gpt-4o")["none"]
    own = simulated(SUPPORT, "--policies", "none", "--prices", mine)["none"]
    assert (own["price"], own["price_date"], listed["price"]) == ("own", "2026-01-31", "gpt-4o")
    assert own["prompt_tokens"] == listed["prompt_tokens"]
    assert own["cost_usd"] == pytest.approx((own["prompt_tokens"] - 0.5 * own["cached_tokens"]) / 1e6, abs=1e-6)


def test_caches_that_go_by_breakpoints() -> None:
    """Anthropic's serves what ends at a breakpoint of the request before, and writing it costs more."""
    found = {
        price: simulated(SUPPORT, "--policies", "none,balanced", "--price", price)
        for price in ("gpt-4.1-mini", "gpt-6-luna", "claude-sonnet-5")
    }
    for price, policies in found.items():
        none = policies["none"]
        assert 0.5 < none["cached_tokens"] / none["prompt_tokens"] <= none["repeated"], price
    sonnet = found["claude-sonnet-5"][FULL]
    plain = (2.0 * sonnet["prompt_tokens"] - 1.8 * sonnet["cached_tokens"]) / 1e6
    assert plain < sonnet["cost_usd"] < 1.25 * plain, "what is written into the cache costs a quarter more"


def test_budget_window_and_instructions(tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    told.write_text("You are the desk of a bicycle shop. " * 40)
    plain = simulated(SUPPORT, "--policies", "none")["none"]
    more = simulated(SUPPORT, "--policies", "none", "--instructions", told)["none"]
    words = 4 + reference_count("o200k_base", told.read_text())
    assert more["prompt_tokens"] - plain["prompt_tokens"] == words * plain["requests"]
    found = simulated(SUPPORT, "--policies", "none", "--budget", "3000")
    assert found["none"]["max_request_tokens"] <= 3_000 < plain["max_request_tokens"]
    assert found["none"]["dropped"] > 0
    assert found[FULL]["prompt_tokens"] == plain["prompt_tokens"]


def test_several_conversations_are_added_up(locomo: Path, tmp_path: Path) -> None:
    both = json.loads(locomo.read_bytes())[:2]
    assert [one["sample_id"] for one in both] == ["conv-26", "conv-30"]
    for one in both:  # their first sessions are enough
        talk = one["conversation"]
        one["conversation"] = {key: talk[key] for key in talk if re.match(r"speaker|session_[1-4](_|$)", key)}
        one["qa"] = []
    (tmp_path / "both.json").write_text(json.dumps(both))
    each = [
        simulated(tmp_path / "both.json", "--policies", "trim", "--conversation", name)["trim"]
        for name in ("conv-26", "conv-30")
    ]
    found = simulated(tmp_path / "both.json", "--policies", "trim")["trim"]
    for key in ("prompt_tokens", "cached_tokens", "requests"):
        assert found[key] == sum(one[key] for one in each)
    assert found["max_request_tokens"] == max(one["max_request_tokens"] for one in each)


def test_a_transcript_on_standard_input() -> None:
    with SUPPORT.open("rb") as transcript:
        words = bare.command("simulate", "-", "--policies", "none", "--json")
        done = subprocess.run(words, stdin=transcript, capture_output=True, check=True, env=bare.surroundings())
    assert json.loads(done.stdout)["policies"] == list(simulated(SUPPORT, "--policies", "none").values())


def test_it_is_the_same_each_time_and_leaves_nothing_behind(tmp_path: Path) -> None:
    words = ("simulate", SUPPORT, "--json")
    assert bare(*words).out == bare(*words, HITHERTO_DATA_DIR=str(tmp_path / "pg")).out
    assert list(tmp_path.iterdir()) == []


# How it is shown


def test_for_people() -> None:
    for columns in (80, 140):
        ran = bare("simulate", SUPPORT, COLUMNS=str(columns))
        assert (ran.code, ran.err) == (0, "")
        assert max(map(len, ran.out.splitlines())) <= columns
        for name in COMPOSED:
            assert re.search(rf"^{name} +[\d,]+ +\d+% .* \$0\.\d{{4}} +\d+% +[\d,]+ ", ran.out, re.MULTILINE)
    said = " ".join(ran.out.split())
    assert "support: 30 messages, 14 requests" in said
    assert re.search(r"Prices of gpt-4.1-mini as of 20\d\d-\d\d-\d\d; budget 16,000 tokens", said)
    assert "native is left out" in said
    assert "All of it fits the budget" in said


def test_a_narrow_terminal_shows_fewer_columns_and_whole_names() -> None:
    table = bare("simulate", SUPPORT, "--policies", "token-threshold", COLUMNS="60").out.splitlines()[1:5]
    assert table[0].split() == ["policy", "prompt", "cached", "cost", "of", "full", "left", "%"]
    assert table[3].startswith("token-threshold ")


def test_where_the_budget_cuts_nothing_is_said_of_that() -> None:
    said = bare("simulate", SUPPORT, "--policies", "none", "--budget", "3000").out
    assert "fits the budget" not in said


def test_progress_is_for_a_terminal() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        bare.command("simulate", SUPPORT, "--json"), stdout=subprocess.PIPE, stderr=theirs, env=bare.surroundings()
    ) as running:
        os.close(theirs)
        progress = b""
        while select.select([ours], [], [], 30)[0]:
            try:
                progress += os.read(ours, 4096)
            except OSError:  # how Linux says that the other end was closed
                break
        assert running.stdout is not None
        assert set(json.loads(running.stdout.read())) == {"policies"}
    os.close(ours)
    assert b"100%" in progress


def test_the_picture(tmp_path: Path) -> None:
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for ending, begin in begins.items():
        path = tmp_path / f"out{ending}"
        ran = bare("simulate", SUPPORT, "--plot", path, "--policies", "none,trim:max_turns=4,keep_turns=2")
        assert (ran.code, ran.err) == (0, "")
        assert "The picture is in" in ran.out
        assert path.read_bytes().startswith(begin)
    drawn = (tmp_path / "out.svg").read_text()
    for text in ("support: tokens of each request, by policy", "tokens in the request"):
        assert f"<!-- {text} -->" in drawn
    for label in ("none", "trim:max_turns=4,keep_turns=2"):
        assert re.search(rf"<!-- {label}  .*\$0\.\d+ -->", drawn)


def test_a_model_that_fails_each_time(tmp_path: Path) -> None:
    path = written(tmp_path / "talk.jsonl", *chat(6))
    with Endpoint(refused(401, "Who are you?")) as endpoint:
        ran = bare(
            *("simulate", path, "--policies", "none,summarize:context_limit=4,keep_turns=2", "--json"),
            HITHERTO_MODEL="m",
            HITHERTO_MODEL_BASE_URL=endpoint.url,
        )
    assert ran.code == 0
    assert "digests failed, and the figures of their policies show more messages" in ran.err.splitlines()[-1]
    _, none, failed = ran.json["policies"]
    assert (failed["digest_calls"], failed["prompt_tokens"]) == (0, none["prompt_tokens"])


# What goes wrong: said before anything is simulated


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["--policies", "none,forever"], 2, "no policy named 'forever'"),
        (["--policies", "none,,trim"], 2, "has an empty place"),
        (["--policies", ""], 2, "has an empty place"),
        (["--policies", "none,trim,none"], 2, "'none' is there twice"),
        (["--policies", "trim:max_turns=4,keep_turns=9"], 2, "could never act"),
        (["--policies", "native"], 2, "'native' cannot be simulated"),
        (["--policies", "nowhere.json"], 2, "cannot read the policy nowhere.json: No such file"),
        (["--price", "gpt-9"], 2, "has no price of 'gpt-9'; it has: claude-haiku-4-5, "),
        (["--prices", "nowhere.json"], 2, "cannot read the price list nowhere.json"),
        (["--prices", str(SUPPORT)], 2, "support.jsonl is no JSON"),
        (["--price", "gpt-4o", "--window", "200000"], 2, "gpt-4o takes 128,000 tokens"),
        (["--budget", "9000", "--window", "8000"], 2, "more than the window of 8,000"),
        (["--budget", "0"], 2, "--budget"),
        (["--budget", "60"], 1, "the request with the message of seq "),
        (["--instructions", "nowhere.txt"], 2, "cannot read the instructions nowhere.txt"),
        (["--plot", "out.gif"], 2, "ends in .png, .svg, .pdf"),
        (["--plot", "no/such/place/out.png"], 2, "where no file can be written"),
        (["--conversation", "conv-1"], 1, "leave --conversation out"),
    ],
)
def test_a_clear_line_and_an_exit_code(words: list[str], code: int, why: str) -> None:
    assert why in bare("simulate", SUPPORT, *words).failed(code)


def test_policies_that_are_no_policies(tmp_path: Path) -> None:
    bad = {
        "cut": ('{"version": 1, "na', "is not JSON"),
        "newer": ('{"version": 2, "name": "x", "stages": []}', "policy.version is 2"),
        "field": ('{"version": 1, "name": "x", "stages": [{"trigger": {"is": "turns", "m": 3}}]}', "policy.stages[0]"),
    }
    for name, (text, why) in bad.items():
        path = tmp_path / f"{name}.json"
        path.write_text(text)
        line = bare("simulate", SUPPORT, "--policies", path).failed(2)
        assert why in line
        assert f"{name}.json" in line


def test_nothing_to_simulate(tmp_path: Path) -> None:
    path = written(tmp_path / "greeting.jsonl", {"role": "assistant", "content": "Welcome."})
    assert "no request was made" in bare("simulate", path).failed(1)


def test_one_picture_is_of_one_conversation(locomo: Path, tmp_path: Path) -> None:
    line = bare("simulate", locomo, "--plot", tmp_path / "out.png").failed(2)
    assert "has 10 conversations; choose one to draw with --conversation" in line


def test_without_matplotlib(tmp_path: Path) -> None:
    program = "import sys; sys.modules['matplotlib'] = None; from hitherto.cli import main; main()"
    words = ["simulate", str(SUPPORT), "--plot", str(tmp_path / "out.png")]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, env=bare.surroundings()
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("hitherto: --plot needs matplotlib, which is not installed; pip install 'hitherto[plot]'\n")
