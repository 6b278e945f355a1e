"""Whether an append gets dearer as its conversation gets longer, under each preset."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.ground import Ground, memory_on, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Findings, ratio
from hitherto import Memory, Policy, Scope
from hitherto.core.log.message import Payload
from hitherto.policies import PRESETS
from hitherto.ports.models import CompactionResult

_BAR = Bar(limit=1.2)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_TEXT = 36
_BATCH = 20
"""No more than `chunks` takes at once: the long conversation has no backlog, which would fire at every append."""
_SHORT = 10


class _Compactor:
    """Makes an opaque item at once."""

    name = "bench"
    family = "bench"

    async def check(self) -> None:
        pass

    async def compact(self, items: Sequence[Payload], *, instructions: str | None = None) -> CompactionResult:
        return CompactionResult(items=({"type": "compaction", "encrypted_content": "x" * 1_000},))

    async def aclose(self) -> None:
        pass


async def run(ground: Ground) -> Findings:
    """An append, planning included, to a long conversation ÷ the same to one of ten messages."""
    long = ground.size(10_000, quick=200)
    repetitions, warm_up = ground.size(300, quick=5), ground.size(50, quick=2)
    random = Random(11)
    turns = [turn(random, _TEXT) for _ in range(repetitions + warm_up)]
    findings = Findings()
    for name, preset in PRESETS.items():
        policy = preset()
        async with ground.database() as url, memory_on(url, compactor=_Compactor()) as memory:
            whole = memory.conversation("long", scope=_SCOPE, policy=policy)
            await _filled(memory, "long", long, policy)
            # Each is appended to once: after that it has more than ten messages.
            for number in range(len(turns)):
                await _filled(memory, f"short {number}", _SHORT, policy)
            shorts = [
                memory.conversation(f"short {number}", scope=_SCOPE, policy=policy) for number in range(len(turns))
            ]
            await ground.settle(url)
            over, under = await in_turns(
                [
                    Side(
                        f"append, {name}, {long:,} messages",
                        lambda n, chat=whole: chat.append(*turns[n], key=f"turn {n}"),
                        memory.wait_for_digests,
                    ),
                    Side(
                        f"append, {name}, {_SHORT} messages",
                        lambda n, chats=shorts: chats[n].append(*turns[n], key=f"turn {n}"),
                        memory.wait_for_digests,
                    ),
                ],
                repetitions=repetitions,
                warm_up=warm_up,
            )
        findings.figures.append(ratio(over, under, bar=_BAR))
    findings.notes.append(
        f"{repetitions} appends a side of a question and its answer with a key, on PostgreSQL, planning included; the "
        "short side is another conversation each time. Digests that an append sets off are made between the appends."
    )
    return findings


async def _filled(memory: Memory, name: str, messages: int, policy: Policy) -> None:
    """A conversation of so many messages, and no digest in progress."""
    random = Random(12)
    chat = memory.conversation(name, scope=_SCOPE, policy=policy)
    for start in range(0, messages, _BATCH):
        turns = [turn(random, _TEXT) for _ in range(min(_BATCH, messages - start) // 2)]
        await chat.append(*(message for pair in turns for message in pair))
        await memory.wait_for_digests()
