"""Turns with `at` under kill -9: what was shown is shown whole, or the new way is."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence

import hitherto
from hitherto import Conversation, assistant, user
from tests.conftest import SCOPE
from tests.faults.processes import Program
from tests.faults.replacer import answer, turn
from tests.faults.tables import Tables
from tests.faults.waiting import until
from tests.lengths import examples, lasting

KILLS = examples(40)


class Tree:
    """What a conversation has to have: `texts` of all messages, the message that each follows, and which are shown."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.parents = list[str](), list[int]()
        self.shown: list[int] = []
        self.add(*texts)

    def add(self, *texts: str, at: int | None = None) -> None:
        if at is not None:
            self.shown = [seq for seq in self.shown if seq <= at]
        for text in texts:
            self.parents.append(self.shown[-1] if self.shown else -1)
            self.shown.append(len(self.texts))
            self.texts.append(text)

    async def check(self, chat: Conversation) -> None:
        log = await chat.messages()
        assert [one.seq for one in log] == list(range(len(log)))
        assert [one.message.text for one in log] == self.texts
        assert [one.seq for one in log if one.retracted_rev is None] == self.shown
        ways = Counter(self.parents)
        parting = [(parent, seq, seq in self.shown) for seq, parent in enumerate(self.parents) if ways[parent] > 1]
        assert [(one.parent, one.seq, one.shown) for one in await chat.branches(limit=1_000)] == parting


async def _alone(tables: Tables) -> bool:
    """Whether nobody else is connected: what the dead had sent is done, or will not be."""
    return await tables.one(
        "select count(*) = 0 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
        "and backend_type = 'client backend'"
    )


def _made(key: str, question: str) -> Sequence[str]:
    made = "[calls look({})]", f"{key} finds", f"{key} answers"
    return (question, *made) if question else made


@lasting
async def test_kill_9_of_who_replaces(database: str, tables: Tables) -> None:
    """Questions are edited and answered anew, and each turn is killed: between two exchanges with the database, at all
    of them in turn, or at any moment. Then it is tried again, and the next turn goes on."""
    drawn, tree, took, exchanges = random.Random(39), Tree("q?", "q answers"), 0.0, 1
    through = False
    async with hitherto.open(database, worker=False) as memory:
        await memory.conversation("c", scope=SCOPE).append(user("q?"), assistant("q answers"))
    for number in range(KILLS):
        key, at_any_moment = f"k{number}", number % 4 == 0
        seq = drawn.choice([one for one in tree.shown if tree.texts[one].endswith("?")][-4:])
        question, at = drawn.choice([("", seq), (f"{key}?", seq - 1)])
        words = key, str(at), question, str(0 if at_any_moment else exchanges)
        program = await Program.start(key, "tests.faults.replacer", *words, database=database)
        await program.said("begun")
        if not at_any_moment:
            outlived = await program.ended() == 0
            through, exchanges = through or outlived, 1 if outlived else exchanges + 1
        elif took:
            await asyncio.sleep(drawn.random() * took)
        else:  # the first may end, to know how long that takes
            began = time.monotonic()
            await program.said("ended")
            took = time.monotonic() - began
        await program.kill()
        await until(lambda: _alone(tables), "its sessions have ended")
        async with hitherto.open(database, worker=False) as memory:
            chat = memory.conversation("c", scope=SCOPE)
            whole = len(await chat.messages()) > len(tree.texts)
            if whole:
                tree.add(*_made(key, question), at=at)
            await tree.check(chat)
            again = turn(chat, key, at, question)
            await answer(again, key)
            assert (again.replayed, again.text) == (whole, f"{key} answers")
            if not whole:
                tree.add(*_made(key, question), at=at)
            await tree.check(chat)
            async with chat.turn(f"on {key}?") as following:
                await following.add(f"on {key} answers")
            tree.add(f"on {key}?", f"on {key} answers")
            await tree.check(chat)
    assert through, "one was killed after each exchange"
