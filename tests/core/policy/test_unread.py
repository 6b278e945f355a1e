"""What is read for facts, and when: each message once, whatever happens in between, on heads without a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto import Call, Message, assistant, balanced, tool_result, user
from hitherto.core.log.append import extended
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import RunningDigest
from hitherto.core.log.message import Logged, Sums
from hitherto.core.log.ranges import any_in, joined
from hitherto.core.policy import unread
from hitherto.core.policy.plan import Firing, Means, Plan, plan
from hitherto.core.policy.policy import Policy
from hitherto.errors import InvalidPolicy
from hitherto.policies import (
    FindFacts,
    Keep,
    LastMessages,
    LastTurns,
    Nothing,
    Stage,
    Tokens,
    Trigger,
    Turns,
    Undigested,
)
from tests.core.policy.test_layout import BEGIN, answered, dialogue

READS = Policy("reads", (Stage(Tokens(100), Nothing(), FindFacts()),))
TURN = (user("I row."), assistant("I see."))
LOOK = (assistant(calls=[Call(id="1", name="look", arguments="{}")]), tool_result("1", "found"))


class Played:
    """A conversation whose digests end when the test says so."""

    def __init__(self, policy: Policy = READS) -> None:
        self.policy, self.head = policy, BEGIN
        self.log: list[Logged] = []
        self.reading: Firing | None = None
        self.reads: list[tuple[int, int]] = []

    def append(self, *messages: Message, tokens: int = 10) -> Plan:
        entered, self.head = extended(self.head, messages, [tokens] * len(messages))
        self.log += entered
        return self.ask()

    def ask(self, *, rests: bool = False, facts: bool = True) -> Plan:
        """What is due; a reading begins with it."""
        running = () if self.reading is None else (self._running(self.reading),)
        means = Means(window=10**6, budget=10**6, model=facts, facts=facts)
        planning = plan(self.policy, replace(self.head, running=running), means, rests=rests)
        try:
            probe = next(planning)
            while True:
                probe = planning.send(answered(self.log, probe))
        except StopIteration as end:
            found: Plan = end.value
        for firing in found.firings:
            if isinstance(firing.stage.action, FindFacts):
                self.reading = firing
        return found

    def _running(self, firing: Firing) -> RunningDigest:
        return RunningDigest(
            id=1,
            stage="s",
            attempt=1,
            start=firing.start,
            end=firing.end,
            created_at=BEGIN.now,
            action=DigestAction.FACTS,
        )

    def end(self) -> Plan:
        """The reading ends, and what is due is asked again."""
        if self.reading is not None:
            one, self.reading = self.reading, None
            self.read(one.start, one.end)
            reached = Frontier(
                action=DigestAction.FACTS,
                start=one.start,
                end=one.end,
                sums=one.sums,
                kept_from=one.end + 1,
                kept_sums=one.sums,
            )
            self.head = replace(self.head, frontiers={one.stage.fingerprint: reached})
        return self.ask()

    def read(self, start: int, end: int) -> None:
        assert not any_in(self.head.extracted, start, end), "read twice"
        self.reads.append((start, end))
        self.head = replace(self.head, extracted=joined((*self.head.extracted, (start, end))))

    def finish(self) -> Plan:
        self.head = replace(self.head, finish_seq=self.head.next_seq)
        return self.ask()

    def clear(self) -> None:
        self.head = replace(self.head, view_start=self.head.next_seq, view_sums=self.head.sums, frontiers={})
        self.reading = None

    def rewind(self, first: int) -> None:
        """Messages are taken back, as `pop` does it: they keep their seqs."""
        first = max(first, self.head.view_start)
        self.log = [one for one in self.log if one.seq < first]
        left = {name: one for name, one in self.head.frontiers.items() if one.end < first}
        sums = self.log[-1].sums if self.log else Sums()
        self.head = replace(self.head, sums=sums, frontiers=left, closed=False, awaited=(), late=())
        if self.reading is not None and self.reading.end >= first:
            self.reading = None

    def users(self, first: int, last: int) -> list[int]:
        """Those of these messages that users said."""
        return [one.seq for one in self.log if first <= one.seq <= last and one.message.opens_turn]


steps = st.one_of(
    st.tuples(st.just("append"), st.lists(st.sampled_from([TURN, TURN[:1], TURN[1:], LOOK]), max_size=4)),
    st.tuples(st.sampled_from(["end", "end", "fail", "rest", "finish", "clear"]), st.none()),
    st.tuples(st.sampled_from(["rewind", "chunk"]), st.integers(0, 6)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=25), st.integers(5, 80), st.integers(20, 400))
def test_each_message_is_read_once(played: Sequence[tuple[str, object]], tokens: int, most: int) -> None:
    """Whatever it is read for: a trigger, a rest, the end of the conversation, another policy's digest."""
    it = Played()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(unread, "MOST_AT_ONCE", most)
        for verb, given_ in (*played, ("finish", None)):
            before, found = it.reading, Plan()
            match verb, given_:
                case "append", list(groups):
                    batch = [one for group in groups for one in group]
                    found = it.append(*batch, tokens=tokens) if batch else found
                case "end", _:
                    found = it.end()
                case "fail", _:
                    it.reading = None
                case "rest", _:
                    found = it.ask(rests=True)
                case "finish", _:
                    found = it.finish()
                case "clear", _:
                    it.clear()
                case "rewind", int(back):
                    it.rewind(max(it.head.next_seq - back, 0))
                case "chunk", int(size) if it.reading is None and size:
                    start = max(it.head.view_start, it.head.extracted[-1][1] + 1 if it.head.extracted else 0)
                    if start + size <= it.head.next_seq:
                        it.read(start, start + size - 1)
                case _:
                    pass
            for firing in found.firings:
                assert before is None or verb == "end", "two at once"
                check(it, firing)
        while it.reading is not None:
            check(it, it.reading)
            it.end()
    left = [seq for seq in it.users(it.head.view_start, it.head.next_seq) if not any_in(it.head.extracted, seq, seq)]
    assert [seq for seq in left if seq > max((last for _, last in it.head.extracted), default=-1)] == []


def check(it: Played, firing: Firing) -> None:
    """It is new, something is said in it, its sums are true, and it is no larger than it must be."""
    assert not any_in(it.head.extracted, firing.start, firing.end)
    assert it.head.view_start <= firing.start <= firing.end < it.head.next_seq
    said = it.users(firing.start, firing.end)
    assert said
    within = [one for one in it.log if one.seq <= firing.end]
    assert firing.sums == within[-1].sums
    tokens = sum(one.tokens for one in within if one.seq >= firing.start)
    assert tokens <= unread.MOST_AT_ONCE or len(said) == 1


def test_it_is_due_by_what_is_unread() -> None:
    it = Played()
    for _ in range(5):
        found = it.append(*TURN)
        assert (found.firings, found.unread) == ((), True)
    found = it.append(*TURN)
    assert [(one.start, one.end) for one in found.firings] == [(0, 11)]
    assert not found.unread
    assert not it.append(*TURN).unread, "the reading's end will tell"
    assert it.end().unread


def test_results_of_tools_do_not_count() -> None:
    it = Played()
    it.append(TURN[0], LOOK[0])
    it.append(LOOK[1], tokens=9_000)
    assert it.append(TURN[1]).firings == ()
    assert it.append(*TURN, tokens=60).firings != ()


def test_a_turn_that_is_not_finished_waits_for_its_end_or_a_rest() -> None:
    it = Played()
    it.append(user("Long."), tokens=200)
    assert it.reading is None
    it.ask(rests=True)
    assert it.reading is not None


def test_where_users_said_nothing_nothing_is_read() -> None:
    it = Played()
    it.append(*TURN)
    it.ask(rests=True)
    it.end()
    for found in (it.append(TURN[1], tokens=500), it.ask(rests=True), it.finish()):
        assert (found.firings, found.unread) == ((), False)


def test_most_appends_ask_for_nothing() -> None:
    it = Played()
    it.append(*TURN * 6)
    it.end()
    it.append(*TURN)
    with pytest.raises(StopIteration):
        next(plan(READS, it.head, Means(window=100, budget=100, model=True, facts=True)))


def test_it_takes_a_model_that_finds_facts_and_nothing_that_failed() -> None:
    it = Played(balanced())
    it.append(*dialogue(3))
    assert it.ask(rests=True, facts=False) == Plan()
    it.head = replace(it.head, failures=2, resume_at=it.head.clock.replace(year=9_999))
    found = it.ask(rests=True)
    assert (found.firings, found.held, found.unread) == ((), True, True)


def test_a_rest_is_no_end() -> None:
    """A resting conversation is not summarized."""
    it = Played(balanced())
    it.append(*dialogue(3))
    (firing,) = it.ask(rests=True).firings
    assert isinstance(firing.stage.action, FindFacts)
    it.reading = None
    assert [one.stage.action.digest_action for one in it.finish().firings] == [
        DigestAction.SUMMARIZE,
        DigestAction.FACTS,
    ]


@pytest.mark.parametrize(
    ("trigger", "keep", "within"),
    [(Undigested(4), Nothing(), False), (Tokens(10), LastMessages(2), True), (Turns(2), LastTurns(2), False)],
)
def test_what_cannot_be(trigger: Trigger, keep: Keep, within: bool) -> None:
    with pytest.raises(InvalidPolicy):
        Stage(trigger, keep, FindFacts(), within_turn=within)


def test_nothing_of_a_private_conversation() -> None:
    played = Played()
    played.head = replace(played.head, private=True)
    assert not played.append(*TURN, tokens=200).firings
    assert not played.finish().firings
    assert not played.ask(rests=True).firings
    assert not played.ask().unread
