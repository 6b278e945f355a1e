"""What the view of a long conversation takes, once its messages are at hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

from benchmarks.ground import Ground
from benchmarks.report import Bar, Figure, Findings
from hitherto.core.context.redaction import Redactor
from hitherto.core.log.append import extended
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.group import groups
from hitherto.core.log.head import Head, empty
from hitherto.core.log.message import Logged
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.view import view
from hitherto.policies import none, redact
from hitherto.wire import codec, read
from tests.wire.conversations import WIRES, long_log

_BAR = Bar(limit=30)
_KEPT = 40
_ALL = "policy redact: the placeholders of all messages"
_TOKENS = 50


async def run(ground: Ground) -> Findings:
    """The view of a long head, with its messages grouped and, under `redact`, all but the newest redacted."""
    size, repetitions = ground.size(10_000, quick=200), ground.size(9, quick=3)
    findings, plain, redacting = Findings(), none(), redact()
    for wire in WIRES:
        messages = [read(item, wire) for item in long_log(size // 2, True, wire=wire)[:size]]
        log, head = extended(empty(datetime(2026, 1, 1, tzinfo=UTC)), messages, [_TOKENS] * size)
        _check(log, head)
        reached = _redacted(head, log, redacting)
        sides: dict[str, Callable[[], object]] = {
            "policy none: view()": lambda h=head: view(plain, h),
            "policy none: view() and groups": lambda h=head, of=log: (view(plain, h), groups(of)),
            "policy redact: view() and groups": lambda h=reached, of=log: (view(redacting, h), groups(of)),
            _ALL: lambda h=reached, of=log, to=wire: _placeholders(redacting, h, of, to),
        }
        for what, act in sides.items():
            value, bar = _milliseconds(act, repetitions), None if what == _ALL else _BAR
            findings.figures.append(Figure(what=f"{size:,} messages, {wire}, {what}", value=value, unit="ms", bar=bar))
    findings.notes.append(
        "the messages are in memory already, as the store gives them; reading them from PostgreSQL and writing them as "
        f"items is not in it. Under redact, all but the newest {_KEPT} messages have their tool results redacted; a "
        "placeholder is made when its message is written, so of those alone that fit a budget."
    )
    return findings


def _placeholders(policy: Policy, head: Head, log: tuple[Logged, ...], wire: str) -> object:
    masking = Redactor(view(policy, head).layout, codec(wire), head.sums.tokens)
    return [masking(one) for one in log]


def _check(log: tuple[Logged, ...], head: Head) -> None:
    """Raises RuntimeError where a payload was copied: what is not redacted is the very same object."""
    masking = Redactor(view(none(), head).layout, codec(log[0].message.wire), head.sums.tokens)
    members = {id(member) for group in groups(log) for member in group.members}
    if members != {id(one) for one in log} or not all(masking(one) is one.message for one in log):
        raise RuntimeError("a view copied messages")


def _redacted(head: Head, log: tuple[Logged, ...], policy: Policy) -> Head:
    """`head` as redactions up to the newest messages leave it."""
    last = log[-_KEPT]
    reach = Frontier(
        action=DigestAction.REDACT, start=0, end=last.seq, sums=last.sums, kept_from=last.seq + 1, kept_sums=last.sums
    )
    return replace(head, frontiers={stage.fingerprint: reach for stage in policy.stages})


def _milliseconds(act: Callable[[], object], repetitions: int) -> float:
    times: list[float] = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        act()
        times.append(time.perf_counter() - begun)
    return median(times) * 1_000
