"""`hitherto simulate` as its users meet it, and the bars that it is to hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hitherto import Policy
from hitherto.simulation.run import redact_summarize, redact_trim
from tests.acceptance.cli.commands import SUPPORT, bare
from tests.tokens.test_counters import reference_count

EXAMPLES = SUPPORT.parent
INCIDENT = EXAMPLES / "incident.jsonl"
COMPOSED = ["redact_summarize", "redact_trim"]
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
    found = simulated(INCIDENT, "--policies", f"{policy_file(0)},{policy_file(1)}")
    assert bars_held(found) == COMPOSED
    assert found["redact_summarize"]["digested"] > 0.85
    assert found[FULL]["cost_usd"] == max(one["cost_usd"] for one in found.values())
    assert (
        found[FULL]["max_request_tokens"]
        > 16_000
        >= max(one["max_request_tokens"] for name, one in found.items() if name != FULL)
    )
    assert {one["evidence"] for one in found.values()} == {None}, "there are no questions about it"


def policy_file(number: int) -> Path:
    return EXAMPLES / "policies" / f"{COMPOSED[number]}.json"


def test_the_files_of_the_composed_policies_are_what_is_simulated() -> None:
    for number, made in enumerate((redact_summarize(), redact_trim())):
        assert Policy.from_json(json.loads(policy_file(number).read_text())) == made


def test_the_policies_that_are_named_and_nothing_else() -> None:
    found = simulated(SUPPORT, "--policies", "trim:max_turns=4,keep_turns=2,none", "--policies", policy_file(1))
    assert list(found) == [FULL, "trim:max_turns=4,keep_turns=2", "none", "redact_trim"]
    assert found["trim:max_turns=4,keep_turns=2"]["dropped"] > found["none"]["dropped"] == 0


def test_prices_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(PRICES))
    listed = simulated(SUPPORT, "--policies", "none", "--price", "gpt-4o")["none"]
    own = simulated(SUPPORT, "--policies", "none", "--prices", mine)["none"]
    assert (own["price"], own["price_date"], listed["price"]) == ("own", "2026-01-31", "gpt-4o")
    assert own["prompt_tokens"] == listed["prompt_tokens"]
    assert own["cost_usd"] == pytest.approx((own["prompt_tokens"] - 0.5 * own["cached_tokens"]) / 1e6, abs=1e-6)


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


# How it is shown


def test_for_people() -> None:
    composed = ("--policies", policy_file(0), "--policies", policy_file(1))
    for columns, policies in ((140, composed), (80, ())):
        ran = bare("simulate", SUPPORT, *policies, COLUMNS=str(columns))
        assert (ran.code, ran.err) == (0, "")
        assert max(map(len, ran.out.splitlines())) <= columns
        for name in COMPOSED:
            assert re.search(rf"^{name} +[\d,]+ +\d+% .* \$0\.\d{{4}} +\d+% +[\d,]+ ", ran.out, re.MULTILINE)
    said = " ".join(ran.out.split())
    assert "support: 30 messages, 14 requests" in said
    assert re.search(r"Prices of gpt-4.1-mini as of 20\d\d-\d\d-\d\d; budget 16,000 tokens", said)
    assert "native is left out" in said
    assert "All of it fits the budget" in said


def test_the_picture(tmp_path: Path) -> None:
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for ending, begin in begins.items():
        path = tmp_path / f"out{ending}"
        policies = "none,trim:max_turns=4,keep_turns=2" if ending == ".svg" else "none"
        ran = bare("simulate", SUPPORT, "--plot", path, "--policies", policies)
        assert (ran.code, ran.err) == (0, "")
        assert "The picture is in" in " ".join(ran.out.split())
        assert path.read_bytes().startswith(begin)
    drawn = (tmp_path / "out.svg").read_text()
    for text in ("support: tokens of each request, by policy", "tokens in the request"):
        assert f"<!-- {text} -->" in drawn
    for label in ("none", "trim:max_turns=4,keep_turns=2"):
        assert re.search(rf"<!-- {label}  .*\$0\.\d+ -->", drawn)


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


def test_without_matplotlib(tmp_path: Path) -> None:
    program = "import sys; sys.modules['matplotlib'] = None; from hitherto.cli import main; main()"
    words = ["simulate", str(SUPPORT), "--plot", str(tmp_path / "out.png")]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, env=bare.surroundings()
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("hitherto: --plot needs matplotlib, which is not installed; pip install 'hitherto[plot]'\n")
