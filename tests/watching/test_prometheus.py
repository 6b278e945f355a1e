"""Metrics as a Prometheus server reads them."""

from __future__ import annotations

import re
import socket
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from hitherto.core.digests.digest import Backlog
from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.core.log.frontier import DigestAction
from hitherto.errors import InvalidSettings
from hitherto.watching import CONTENT_TYPE, Metrics, serving

Labels = frozenset[tuple[str, str]]


def read(exposition: bytes) -> dict[tuple[str, Labels], float]:
    """Every sample, as Prometheus's own parser reads it."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exposition.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


class Read:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, name: str, **labels: str) -> float | None:
        return read(self._metrics.exposition()).get((f"hitherto_{name}", frozenset(labels.items())))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def value(metrics: Metrics) -> Read:
    return Read(metrics)


def call(**fields: object) -> ModelCall:
    given: dict[str, object] = {"purpose": Purpose.DIGEST, "model": "small", "latency_ms": 250, **fields}
    return ModelCall(**given)  # type: ignore[arg-type] # a test names only what it is about


def test_appends_and_contexts(metrics: Metrics, value: Read) -> None:
    assert (value("messages_appended_total"), value("append_seconds_count")) == (0, 0)
    metrics.appended(messages=2, seconds=0.002)
    metrics.appended(messages=3, seconds=0.2)
    metrics.context_built(seconds=0.004)
    assert value("messages_appended_total") == 5
    assert (value("append_seconds_count"), value("append_seconds_sum")) == (2, pytest.approx(0.202))
    assert [value("append_seconds_bucket", le=bound) for bound in ("0.001", "0.0025", "+Inf")] == [0, 1, 2]
    assert (value("context_seconds_count"), value("context_seconds_sum")) == (1, 0.004)


def test_digests_by_what_they_did_and_how_they_ended(metrics: Metrics, value: Read) -> None:
    metrics.digested(action=DigestAction.SUMMARIZE, cause=None, seconds=2)
    metrics.digested(action=DigestAction.SUMMARIZE, cause=None, seconds=3)
    metrics.digested(action=DigestAction.CHUNK, cause=FailureCause.REFUSED, seconds=0.5)
    assert value("digests_total", action="summarize", outcome="completed") == 2
    assert value("digests_total", action="chunk", outcome="refused") == 1
    assert value("digest_seconds_sum", action="summarize") == 5


def test_model_calls(metrics: Metrics, value: Read) -> None:
    metrics.called(call(tokens_in=91, tokens_cached=64, tokens_out=17, cost=0.25))
    metrics.called(call(tokens_in=9, tokens_out=3))
    metrics.called(call(purpose=Purpose.CORRECT, cause=FailureCause.BUSY))
    assert value("model_calls_total", model="small", purpose="digest", outcome="answered") == 2
    assert value("model_calls_total", model="small", purpose="correct", outcome="busy") == 1
    assert [value("model_tokens_total", model="small", direction=way) for way in ("in", "cached", "out")] == [
        100,
        64,
        20,
    ]
    assert value("model_cost_dollars_total", model="small") == 0.25
    assert (value("model_call_seconds_count", model="small"), value("model_call_seconds_sum", model="small")) == (
        3,
        0.75,
    )


def test_what_an_endpoint_makes_up_breaks_nothing(metrics: Metrics, value: Read) -> None:
    metrics.called(call(tokens_in=-5, tokens_out=0))
    assert value("model_tokens_total", model="small", direction="in") is None
    assert value("model_tokens_total", model="small", direction="out") == 0


def test_there_are_no_gauges_before_somebody_has_looked(metrics: Metrics, value: Read) -> None:
    assert value("digests_due") is None
    metrics.show(
        Backlog(due=4, claimed=2, put_off=1, lag_seconds=7.5, lag_messages=60, resting=3, workers=2),
    )
    names = ("digests_due", "digests_in_progress", "digests_put_off", "digest_lag_seconds", "digest_lag_messages")
    assert [value(name) for name in names] == [4, 2, 1, 7.5, 60]
    assert (value("conversations_resting"), value("workers")) == (3, 2)
    metrics.show(Backlog())
    assert [value(name) for name in names] == [0] * 5
    assert value("workers") == 0


def test_two_memories_count_apart() -> None:
    one, two = Metrics(), Metrics()
    one.appended(messages=1, seconds=0)
    assert (Read(one)("messages_appended_total"), Read(two)("messages_appended_total")) == (1, 0)


def test_names_and_help_keep_prometheus_conventions(metrics: Metrics) -> None:
    metrics.show(Backlog(workers=1))
    families = list(text_string_to_metric_families(metrics.exposition().decode()))
    for family in families:
        assert family.name.startswith("hitherto_")
        assert family.documentation.endswith(".")
        if family.type == "histogram" or family.name.endswith("_seconds"):
            assert family.name.endswith("_seconds")
            assert "econds" in family.documentation
    lines = metrics.exposition().decode().splitlines()
    assert all(line.split()[2].endswith("_total") for line in lines if re.match(r"# TYPE \S+ counter", line))


def test_every_metric_is_in_the_docs_with_its_labels(metrics: Metrics) -> None:
    """A row each, in docs/observability.md."""
    metrics.show(Backlog(workers=1))
    metrics.digested(action=DigestAction.CHUNK, cause=None, seconds=1)
    metrics.called(call(tokens_in=1, cost=1))
    metrics.answered(method="GET", path="/", status=200, seconds=1)
    page = (Path(__file__).resolve().parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")
    rows = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in re.findall(_ROW, page, re.MULTILINE)}
    families = list(text_string_to_metric_families(metrics.exposition().decode()))
    found = {
        family.name + ("_total" if family.type == "counter" else ""): {
            label for sample in family.samples for label in sample.labels if label != "le"
        }
        for family in families
        if not family.name.endswith("_created")
    }
    assert rows == found


_ROW = r"^\| `(hitherto_\w+)` \| \w+ \| (.*?) \|"


@given(st.lists(st.text(), max_size=200))
def test_model_names_make_no_series_without_end(names: list[str]) -> None:
    metrics = Metrics()
    for name in names:
        metrics.called(call(model=name))
    metrics.exposition()
    metrics = Metrics()
    for number in range(500):
        metrics.called(call(model=f"model-{number}"))
    metrics.called(call(model="model-0"))
    samples = read(metrics.exposition())
    models = {dict(labels)["model"] for _, labels in samples if "model" in dict(labels)}
    assert len(models) == 51
    total = [value for (name, labels), value in samples.items() if name == "hitherto_model_calls_total" and labels]
    assert sum(total) == 501


class TestServing:
    def test_over_http(self, metrics: Metrics) -> None:
        metrics.appended(messages=7, seconds=0)
        served = serving(metrics, "127.0.0.1:0")
        try:
            with urllib.request.urlopen(f"http://{served.address}/metrics", timeout=5) as answer:
                assert answer.headers["Content-Type"] == CONTENT_TYPE
                assert read(answer.read())["hitherto_messages_appended_total", frozenset()] == 7
        finally:
            served.close()
        served.close()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", int(served.address.rpartition(":")[2])), timeout=5)

    def test_a_port_alone_is_for_this_machine(self, metrics: Metrics) -> None:
        served = serving(metrics, "0")
        served.close()
        assert served.address.startswith("127.0.0.1:")

    def test_a_port_in_use(self, metrics: Metrics) -> None:
        served = serving(metrics, "127.0.0.1:0")
        try:
            with pytest.raises(InvalidSettings, match=r"cannot be served at '127.0.0.1:\d+': Address already in use"):
                serving(metrics, served.address)
        finally:
            served.close()

    @pytest.mark.parametrize(
        "address", ["", ":", "metrics", "localhost:", "localhost:http", "1:2:3", "[::1]", ":65536", ":-1", "::1:9100"]
    )
    def test_what_is_no_address(self, metrics: Metrics, address: str) -> None:
        with pytest.raises(InvalidSettings, match="write HOST:PORT"):
            serving(metrics, address)
