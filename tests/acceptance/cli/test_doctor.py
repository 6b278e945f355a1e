"""`hitherto doctor` as its users meet it: on what is well, and on settings, models and price lists that are broken."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hitherto.providers import names
from hitherto.store import schema
from tests.acceptance.cli.commands import NOWHERE, SUPPORT, Cli, bare
from tests.acceptance.cli.doctoring import (
    KEY,
    NAMES,
    STRUCTURED,
    doctor,
    embedder_at,
    in_database,
    model_at,
    ranked,
    without_database,
)
from tests.providers.embedders.serving import PATH, listed
from tests.providers.models.endpoint import Answer, Endpoint, compacted, refused, said

# What is well


def test_all_is_well(cli: Cli) -> None:
    cli("replay", SUPPORT)
    found = doctor(cli)
    assert found.code == 0
    assert found.others() == {"ok", "skipped"}
    assert re.match(
        r"PostgreSQL 18\S*, Hitherto's own, in /.*/pg, as hitherto; a round trip: [\d.]+ ms; "
        r"fsync on, full_page_writes on \| $",
        found.said("database", "ok"),
    )
    assert f"revision {schema.revisions()[-1]}" in found.said("schema", "ok")
    assert "set: data_dir" in found.said("settings", "ok")
    assert "0 due, 0 in progress" in found.said("queue", "ok")
    assert "without a model" in found.said("model", "ok")
    assert "wait" in found.said("index", "ok") or "all is in the search index" in found.said("index", "ok")
    assert "vectors of 256 numbers are made in this process" in found.said("embedder", "ok")
    assert found.state("reranker") == found.state("compactor") == "skipped"


def test_a_table_for_people(cli: Cli) -> None:
    ran = cli("doctor", HITHERTO_PRICES="/nowhere")
    assert (ran.code, ran.err) == (1, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    states = re.findall(r"^(\w+) +(ok|warning|failed|skipped) ", ran.out, re.MULTILINE)
    assert list(dict.fromkeys(name for name, _ in states)) == NAMES
    assert ("prices", "failed") in states
    assert re.search(r"^ +→ put that right", ran.out, re.MULTILINE)
    assert ran.out.endswith("\n1 failed, no warnings.\n")
    assert cli("doctor").out.endswith("\nAll is well.\n")


def test_a_throw_away_memory() -> None:
    found = in_database("memory:")
    assert found.code == 0
    assert "nothing is kept" in found.said("database", "ok")
    assert {found.state(name) for name in ("schema", "queue", "index")} == {"skipped"}


# Settings


def test_of_an_unusable_setting_all_else_waits() -> None:
    found = without_database(HITHERTO_DAILY_COST="0")
    assert "HITHERTO_DAILY_COST" in found.said("settings", "failed")
    assert found.others("settings") == {"skipped"}


def test_a_variable_that_is_no_setting() -> None:
    found = without_database(HITHERTO_MODLE="small", HITHERTO_TRACEBACK="1")
    assert found.code == 0
    line = found.said("settings", "warning")
    assert "HITHERTO_MODLE" in line
    assert "if HITHERTO_MODEL is meant" in line


def test_no_secret_is_shown() -> None:
    database = f"postgresql://app:{KEY}@{NOWHERE}/app"
    with Endpoint(refused(401, f"Incorrect API key provided: {KEY}")) as endpoint:
        given = model_at(endpoint, HITHERTO_COMPACT_KEY=KEY, HITHERTO_COMPACT_MODEL="big")
        for words in (("doctor", "--json"), ("doctor",)):
            ran = bare(*words, HITHERTO_DATABASE=database, HITHERTO_COMPACT_BASE_URL=endpoint.url, **given)
            assert KEY not in ran.out + ran.err


# Models


def reading(answer: Answer, tokens: int) -> Answer:
    """The answer of a server that says it read so many tokens."""
    return Answer(body=json.dumps({**json.loads(answer.body), "usage": {"prompt_tokens": tokens}}))


class TestModel:
    def test_it_is_really_asked(self) -> None:
        with Endpoint(STRUCTURED) as endpoint:
            found = without_database(**model_at(endpoint))
        line = found.said("model", "ok")
        assert re.match(
            r"small answered in [\d,]+ ms, after the JSON schema \(1 statements; 91 tokens in, 17 out\)", line
        )
        assert len(endpoint.asked) == 1
        assert endpoint.asked[0]["response_format"]["type"] == "json_schema"
        assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_a_window_that_cuts_prompts_is_found(self) -> None:
        cutting = Endpoint(reading(STRUCTURED, 700), reading(said("yes"), 4_096))
        with cutting as endpoint:
            line = without_database(**model_at(endpoint)).said("model", "failed")
        assert "read 4,096 tokens of a prompt of 12,000 words" in line
        assert "num_ctx" in line
        with Endpoint(reading(STRUCTURED, 700), reading(said(""), 2_050)) as endpoint:
            without_database(**model_at(endpoint)).said("model", "failed")
        with Endpoint(reading(STRUCTURED, 700), refused(400, "context length exceeded")) as endpoint:
            assert "HITHERTO_MODEL_INPUT_LIMIT" in without_database(**model_at(endpoint)).said("model", "warning")
        with Endpoint(reading(STRUCTURED, 700), reading(said("yes"), 12_030)) as endpoint:
            without_database(**model_at(endpoint)).said("model", "ok")

    @pytest.mark.parametrize(
        ("answer", "state", "says"),
        [
            (said("They will meet on Tuesday."), "warning", "HITHERTO_MODEL_OUTPUT=text"),
            (said('{"answer": 42}'), "warning", "nothing that makes a digest: '{\"answer\": 42}'"),
            (said(""), "failed", "said nothing"),
            (refused(401, "Incorrect API key provided"), "failed", "HITHERTO_MODEL_KEY"),
            (refused(404, "The model does not exist", code="model_not_found"), "failed", "HITHERTO_MODEL"),
            (refused(429, "Rate limit reached", retry_after="7"), "failed", "lets no more requests through"),
            (refused(500, "boom"), "failed", "500"),
            (Answer(body="<html>"), "failed", "HITHERTO_MODEL_BASE_URL"),
        ],
    )
    def test_what_it_answers(self, answer: Answer, state: str, says: str) -> None:
        with Endpoint(answer) as endpoint:
            found = without_database(**model_at(endpoint))
        assert says in found.said("model", state)
        assert found.others("model", "prices") == {"ok", "skipped"}


class TestEmbedder:
    def test_one_behind_an_endpoint_is_really_asked(self) -> None:
        with Endpoint(listed([[1, 2, 3]]), path=PATH) as endpoint:
            found = without_database(**embedder_at(endpoint))
        assert re.match(r"tiny/3 answered in [\d,]+ ms, with a vector of 3 numbers", found.said("embedder", "ok"))
        assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"

    @pytest.mark.parametrize(
        ("answer", "says"),
        [
            (refused(401, "Incorrect API key provided"), "HITHERTO_EMBEDDER_KEY"),
            (refused(404, "no such model", code="model_not_found"), "HITHERTO_EMBEDDER"),
            (Answer(body="<html>"), "HITHERTO_EMBEDDER_BASE_URL"),
        ],
    )
    def test_what_it_answers(self, answer: Answer, says: str) -> None:
        with Endpoint(answer, path=PATH) as endpoint:
            found = without_database(**embedder_at(endpoint))
        line = found.said("embedder", "failed")
        assert says in line
        assert "recall goes by words alone" in line
        assert found.others("embedder") == {"ok", "skipped"}

    def test_none(self) -> None:
        assert "words alone" in without_database(HITHERTO_EMBEDDER="none").said("embedder", "skipped")

    def test_the_default_where_it_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(names, "find_spec", lambda _: None)
        assert "Recall goes by words alone" in without_database().said("embedder", "warning")


class TestReranker:
    def test_one_that_is_right(self) -> None:
        with Endpoint(ranked(1, 0), path="/rerank") as endpoint:
            found = without_database(HITHERTO_RERANKER="cross", HITHERTO_RERANKER_BASE_URL=endpoint.root)
        assert re.match(r"cross answered in [\d,]+ ms \|", found.said("reranker", "ok"))

    def test_one_that_is_not(self) -> None:
        with Endpoint(ranked(0, 1), path="/rerank") as endpoint:
            found = without_database(HITHERTO_RERANKER="cross", HITHERTO_RERANKER_BASE_URL=endpoint.root)
        assert "did not put first what answers the question" in found.said("reranker", "warning")
        assert found.code == 0

    def test_the_model_for_digests(self) -> None:
        with Endpoint(STRUCTURED, said('{"ranking": [2, 1]}')) as endpoint:
            found = without_database(**model_at(endpoint, HITHERTO_RERANKER="model"))
        assert "small answered in" in found.said("reranker", "ok")


class TestCompactor:
    def test_an_endpoint_that_compacts(self) -> None:
        with Endpoint(refused(400, "Invalid type for 'input'"), path="/v1/responses/compact") as endpoint:
            found = without_database(HITHERTO_COMPACT_MODEL="big", HITHERTO_COMPACT_BASE_URL=endpoint.url)
        assert "big: its endpoint can compact" in found.said("compactor", "ok")

    def test_one_that_does_not(self) -> None:
        with Endpoint(compacted()) as endpoint:
            found = without_database(HITHERTO_COMPACT_MODEL="big", HITHERTO_COMPACT_BASE_URL=endpoint.url)
        assert "responses/compact is not there" in found.said("compactor", "failed")


# Prices


def price_list(path: Path, **price: float) -> str:
    fields = {"input": 2.0, "cached_input": 0.2, "output": 10.0, "window": 200_000, **price}
    path.write_text(json.dumps({"date": "2026-11-01", "models": {"small": fields}}))
    return str(path)


class TestPrices:
    def test_a_price_that_is_known(self, tmp_path: Path) -> None:
        with Endpoint(STRUCTURED) as endpoint:
            own = price_list(tmp_path / "own.json")
            found = without_database(**model_at(endpoint, HITHERTO_PRICES=own))
        assert "small at $2 in, $0.2 cached, $10 out for 1,000,000 tokens, as of 2026-11-01" in found.said(
            "prices", "ok"
        )

    def test_one_that_is_not(self) -> None:
        with Endpoint(STRUCTURED) as endpoint:
            found = without_database(**model_at(endpoint))
        assert "has no price of small" in found.said("prices", "warning")
        assert found.code == 0


def test_everything_broken_at_once(tmp_path: Path) -> None:
    """All checks still run, and each says what is wrong with it."""
    with Endpoint(refused(401, "Incorrect API key provided")) as endpoint:
        found = in_database(
            f"postgresql://app@{NOWHERE}/app",
            **model_at(endpoint, HITHERTO_PRICES=price_list(tmp_path / "own.json", input=-1)),
            HITHERTO_COMPACT_MODEL="big",
            HITHERTO_COMPACT_BASE_URL="nowhere",
        )
    assert found.code == 1
    failed = {one["name"] for one in found.all if one["state"] == "failed"}
    assert failed == {"database", "model", "compactor", "prices"}


SEED = '{"summary": "They meet on Tuesday.", "facts": []}'


@pytest.mark.parametrize(
    ("answer", "found", "advice"),
    [
        (SEED, "makes a digest without facts: ", "digests that find facts understand it; others fail after a second"),
        ('{"answer": 42}', "makes a digest: ", "such digests fail after a second try"),
    ],
)
def test_what_becomes_of_its_answers(answer: str, found: str, advice: str) -> None:
    with Endpoint(said(answer)) as endpoint:
        line = without_database(**model_at(endpoint)).said("model", "warning")
    assert found in line
    assert advice in line
