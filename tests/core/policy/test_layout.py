"""What a plan takes and what a view shows go by the same layout: on heads that appends made, without a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.core.log.append import extended, marked, tool_items
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.group import groups
from hitherto.core.log.head import PATIENCE, Head, HeadWithCalls, StandingSummary, empty
from hitherto.core.log.message import Kind, Logged, Message
from hitherto.core.log.probe import (
    AnyProbe,
    DialogueAt,
    ProbeAnswer,
    SeqAt,
    SpeakerAt,
    TokensAt,
    ToolIds,
    ToolTokens,
    TurnAt,
)
from hitherto.core.policy.plan import Firing, Means, plan
from hitherto.core.policy.span import Fate
from hitherto.core.policy.view import layout_of, view
from hitherto.policies import (
    Action,
    Chunk,
    Compact,
    Drop,
    Keep,
    LastMessages,
    LastTokens,
    LastTurns,
    Nothing,
    Policy,
    Redact,
    Stage,
    Summarize,
    Tokens,
    Turns,
    Undigested,
    trim,
)
from hitherto.wire import read
from tests.core.policy.policies import policies
from tests.engine.stacks import stacks
from tests.wire.conversations import Conversation, conversations

BEGIN = empty(datetime(2026, 1, 1, tzinfo=UTC))
WINDOW = 400


def answered(log: Sequence[Logged], probe: AnyProbe) -> ProbeAnswer:
    """What a store would find, by looking at every message."""
    match probe:
        case DialogueAt(n):
            found = [one for one in log if one.sums.dialogue >= n][:1]
        case TurnAt(n):
            found = [one for one in log if one.sums.turns >= n][:1]
        case TokensAt(n):
            found = [one for one in log if one.sums.tokens >= n][:1]
        case SeqAt(n):
            found = [one for one in log if one.seq <= n][-1:]
        case SpeakerAt(n):
            found = [one for one in log if one.seq <= n and one.message.kind is not Kind.TOOL_RESULT][-1:]
        case ToolIds(start):
            return tool_items(one for one in log if one.seq >= start)
        case ToolTokens(start, end, calls, never, leaves):
            kinds = {"tool_result", "tool_call"} if calls else {"tool_result"}
            return sum(
                max(one.tokens - leaves, 0)
                for one in log
                if start <= one.seq <= end and one.message.kind in kinds and not set(one.message.tools) & set(never)
            )
    return marked(found[0]) if found else None


def planned(policy: Policy, head: Head, log: Sequence[Logged]) -> tuple[Firing, ...]:
    planning = plan(policy, head, Means(window=WINDOW, budget=WINDOW, model=True, family="gpt-5.2"))
    try:
        probe = next(planning)
        while True:
            probe = planning.send(answered(log, probe))
    except StopIteration as end:
        return end.value.firings


def fired(head: HeadWithCalls, firing: Firing, id: int) -> HeadWithCalls:
    """The head once the firing's effect is visible."""
    action = firing.stage.action.digest_action
    if action is DigestAction.SUMMARIZE:
        text = "They talk."
        standing = StandingSummary(id=id, start=firing.start, end=firing.end, text=text)
        return replace(head, digest=standing, digest_sums=firing.sums)
    reached = Frontier(
        action=action,
        start=firing.start,
        end=firing.end,
        sums=firing.sums,
        kept_from=firing.kept.seq if action is DigestAction.CHUNK else firing.end + 1,
        kept_sums=firing.kept.sums if action is DigestAction.CHUNK else firing.sums,
        digest=id,
    )
    return replace(head, frontiers={**head.frontiers, firing.stage.fingerprint: reached})


def check(firing: Firing, head: HeadWithCalls, log: Sequence[Logged]) -> None:
    """A range holds whole groups, takes no call that is awaited, and leaves a start at a user message."""
    assert 0 <= firing.start <= firing.new_start <= firing.end < head.next_seq
    assert firing.sums == log[firing.end].sums
    if firing.stage.action.digest_action is DigestAction.REDACT and firing.stage.within_turn:
        return  # it redacts single results, which takes no group apart
    after = log[firing.end + 1] if firing.end + 1 < len(log) else None
    assert after is None or after.message.opens_turn or firing.stage.within_turn
    assert len(groups(log)) == len(groups(log[: firing.end + 1])) + len(groups(log[firing.end + 1 :]))
    inside = {call for one in log[firing.new_start : firing.end + 1] for call in one.message.calls}
    assert not [one.seq for one in log[firing.end + 1 :] if inside & set(one.message.answers)], "parts a group"
    awaited = [call for call in head.open_calls.values() if head.sums.turns - call.turn < PATIENCE]
    assert not [call for call in awaited if firing.new_start <= call.seq <= firing.end], "takes an awaited call"


@settings(max_examples=75, deadline=None)
@given(conversation=conversations(turns=10), policy=st.one_of(policies(), stacks()), data=st.data())
def test_ranges_and_layouts(conversation: Conversation, policy: Policy, data: st.DataObject) -> None:
    """After every append: whole ranges, and a layout that accounts for every message, with true sums."""
    messages = conversation.messages
    log: list[Logged] = []
    head, ids, told = BEGIN, 0, set[int]()
    while len(log) < len(messages):
        batch = messages[len(log) : len(log) + data.draw(st.integers(1, 4))]
        entered, head = extended(head, batch, [11] * len(batch))
        log += entered
        for firing in planned(policy, head, log):
            check(firing, head, log)
            ids += 1
            head = fired(head, firing, ids)
            if firing.stage.action.digest_action in (DigestAction.SUMMARIZE, DigestAction.CHUNK):
                fresh = set(range(firing.new_start, firing.end + 1))
                assert not fresh & told, "summarized twice"
                told |= fresh
        shown = view(policy, head)
        at = 0
        for span in shown.before:
            assert span.start == at
            at = span.end + 1
        assert at == shown.start <= shown.stop == len(log)
        assert shown.layout.start_sums == (log[at - 1].sums if at else BEGIN.sums)


def dialogue(turns: int, text: str = "x") -> list[Message]:
    return [
        read(item)
        for turn in range(turns)
        for item in ({"role": "user", "content": f"{text} {turn}"}, {"role": "assistant", "content": "ok"})
    ]


def call(id: str) -> Message:
    made = {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return read({"role": "assistant", "content": None, "tool_calls": [made]})


def result(id: str) -> Message:
    return read({"role": "tool", "tool_call_id": id, "content": "found"})


@given(sizes=st.lists(st.integers(1, 60), min_size=3, max_size=20), kept=st.integers(1, 200))
def test_last_tokens_keeps_at_most_so_many(sizes: list[int], kept: int) -> None:
    """At most `t` tokens, and in any case the newest turn."""
    messages = dialogue(len(sizes))[::2]
    log, head = extended(BEGIN, messages, sizes)
    (firing,) = planned(Policy("p", (Stage(Turns(2), LastTokens(kept), Drop()),)), head, log) or (None,)
    start = 0 if firing is None else firing.end + 1
    left = sum(sizes[start:])
    assert left <= kept or start == len(sizes) - 1
    if start:
        assert left + sizes[start - 1] > kept, "more would have fitted"


@pytest.mark.parametrize("keep", [LastTurns(2), LastMessages(2), LastTokens(30), Nothing()])
@pytest.mark.parametrize("action", [Drop(), Redact(), Summarize(), Compact()])
def test_a_call_is_waited_for_and_then_no_more(keep: Keep, action: Action) -> None:
    """A call without a result holds the range back for the turns it may take, and no longer."""
    policy = Policy("p", (Stage(Turns(3), keep, action),))
    log: list[Logged] = []
    head, first = BEGIN, None
    for turn in range(12):
        batch = (
            [*dialogue(1), call(f"b{turn}"), result(f"b{turn}")]
            if turn
            else [*dialogue(1)[:1], call("b0"), result("b0"), call("a")]
        )
        entered, head = extended(head, batch, [10] * len(batch))
        log += entered
        found = [one for one in planned(policy, head, log) if one.start == 0]
        if found and first is None:
            first = turn
            assert found[0].end >= 1
    assert first is not None, "held back for ever"
    assert first + 1 > PATIENCE


LOOP = [dialogue(1)[0], *map(call, "ab"), result("b"), call("c"), *map(result, "ca"), call("d"), result("d")]
"""One turn: where a result ends, 3 and 5 lie between the call `a` and its result, 6 and 8 do not."""


@pytest.mark.parametrize(
    ("messages", "keep", "retracted", "end"),
    [
        ([*LOOP, call("e"), result("e")], 1, (), 8),
        ([*LOOP, call("e"), result("e")], 2, (), 8),
        ([*LOOP, call("e"), result("e")], 3, (), 6),
        ([*LOOP, call("e"), result("e")], 4, (), 6),
        ([*LOOP, call("e"), result("e")], 5, (), None),
        ([*LOOP, call("e"), result("e")], 7, (), None),
        ([*LOOP, call("e"), result("e")], 2, ((7, 8),), 6),
        ([*LOOP, call("e"), result("e")], 3, ((7, 8),), None),
        ([*LOOP, call("e")], 1, (), None),
        ([dialogue(1)[0], call("a"), result("a"), *dialogue(2)[1:3], call("b"), result("b")], 2, (), None),
    ],
)
@pytest.mark.parametrize("action", [Summarize(), Chunk()])
def test_where_a_range_within_a_turn_ends(
    messages: list[Message], keep: int, retracted: tuple[tuple[int, int], ...], end: int | None, action: Action
) -> None:
    """With a result behind the newest user message that parts no group, before the newest so many messages, and nowhere
    while a call waits."""
    log, head = extended(BEGIN, messages, [10] * len(messages))
    head = replace(head, retracted=retracted)
    live = [one for one in log if not any(first <= one.seq <= last for first, last in retracted)]
    policy = Policy("p", (Stage(Tokens(20), LastMessages(keep), action, within_turn=True),))
    assert [(one.start, one.end) for one in planned(policy, head, live)] == ([] if end is None else [(0, end)])


def test_drop_then_compact_says_what_each_did() -> None:
    """What was dropped before an opaque item was made is in that item, for a policy that drops nothing has no other."""
    dropping, compacting = Stage(Turns(4), LastTurns(2), Drop()), Stage(Turns(5), LastTurns(1), Compact())
    log, head = extended(BEGIN, dialogue(4), [10] * 8)
    head = fired(head, planned(Policy("p", (dropping,)), head, log)[0], 1)
    more, head = extended(head, dialogue(4), [10] * 8)
    policy = Policy("p", (replace(dropping, trigger=Turns(50)), compacting))
    (firing,) = planned(policy, head, (*log, *more))
    head = fired(head, firing, 2)
    for seen in (view(policy, head), view(Policy("p", (compacting,)), head)):
        held = {seq for span in seen.before if span.fate is Fate.DIGESTED for seq in range(span.start, span.end + 1)}
        assert held == set(range(firing.start, firing.end + 1))


def test_chunks_and_drops_say_what_each_did() -> None:
    """What is in a chunk is digested, dropped or not; a policy without chunks has what the drop's row says."""
    chunking, dropping = Stage(Undigested(5), LastMessages(1), Chunk(2)), Stage(Turns(4), LastTurns(3), Drop())
    policy = Policy("p", (chunking, dropping))
    log: list[Logged] = []
    head = BEGIN
    steps = [
        (6, "chunk", (0, 1), [(0, 1, Fate.DIGESTED)]),
        (0, "drop", (0, 2), [(0, 1, Fate.DIGESTED), (2, 2, Fate.DROPPED)]),
        (2, "chunk", (2, 3), [(0, 3, Fate.DIGESTED)]),
        (0, "drop", (3, 4), [(0, 3, Fate.DIGESTED), (4, 4, Fate.DROPPED)]),
    ]
    for at, (more, action, covered, before) in enumerate(steps):
        if more:
            entered, head = extended(head, dialogue(more)[::2], [10] * more)
            log += entered
        firing = next(one for one in planned(policy, head, log) if one.stage.action.word == action)
        assert (firing.start, firing.end) == covered
        head = fired(head, firing, at)
        assert [(span.start, span.end, span.fate) for span in view(policy, head).before] == before
    assert [(span.start, span.end, span.fate) for span in view(Policy("p", (dropping,)), head).before] == [
        (0, 4, Fate.DROPPED)
    ]


def test_late_results_do_not_pile_up() -> None:
    """What a head keeps of results that came late does not grow with the log."""
    messages: list[Message] = []
    for turn in range(100):
        messages += [*dialogue(1), call(f"c{turn}"), *dialogue(1), result(f"c{turn}"), *dialogue(3)]
    log: list[Logged] = []
    head = BEGIN
    policy = trim(max_turns=6, keep_turns=2)
    for message in messages:
        entered, head = extended(head, [message], [10])
        log += entered
        for firing in planned(policy, head, log):
            head = fired(head, firing, 1)
    assert layout_of(policy, head).start > len(log) - 30
    assert len(head.late) == 64
