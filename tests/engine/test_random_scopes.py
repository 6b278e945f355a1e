"""Random histories of several conversations: what each shows of the others, whatever was erased and made private."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto import Conversation, Memory, RecallOptions, assistant, token_threshold, user
from hitherto.core.scope import Scope
from hitherto.errors import BudgetExceeded
from hitherto.store.store import Store
from tests.acceptance.receipts import check
from tests.conftest import SCOPE
from tests.databases import OpenStore
from tests.engine.test_random_histories import quick
from tests.lengths import examples, lasting
from tests.memories import open_on
from tests.postgres.test_erasure_bytes import tables

_names = count(1)

AGENTS = {"a": "planner", "b": "planner", "c": "planner", "x": "another"}
"""The conversations of a user, each with its agent."""

ABOUT = ("the harbor", "a boat", "the weather", "dinner")
DIGESTED = token_threshold(60, keep_messages=2, archive=True)

Step = tuple[Any, ...]

whose = st.sampled_from(sorted(AGENTS))
steps = st.one_of(
    st.tuples(st.just("say"), whose, st.integers(1, 4), st.sampled_from(ABOUT)),
    st.tuples(st.just("say"), whose, st.integers(1, 4), st.sampled_from(ABOUT)),
    st.tuples(st.just("remember"), whose, st.booleans()),
    st.tuples(st.just("erase"), whose, st.sets(st.integers(0, 99), min_size=1, max_size=3)),
    st.tuples(st.just("delete"), whose),
    st.tuples(st.just("fact"), whose),
    st.tuples(st.just("rewind"), whose, st.integers(1, 3)),
    st.tuples(st.just("forget"), whose),
    st.tuples(st.just("digest"), whose),
    st.tuples(st.just("index")),
)
options = st.sampled_from(
    [
        {},
        {},
        {"recall": RecallOptions(all_agents=True)},
        {"recall": RecallOptions(min_score=0.0)},
        {"recall": "own"},
        {"policy": "chunks:threshold=6,batch=4,context=2"},
        {"cross_session": ["latest", "always"]},
        {"cross_session": "latest", "recall": "own"},
        {"cross_session": ["latest", "triggers"], "recall": "own"},
    ]
)
looks = st.tuples(whose, st.sampled_from([150, 400, 4_000]), options, st.sampled_from(ABOUT))


@dataclass(frozen=True, slots=True)
class Word:
    """A word that one message has, and when it was said: by the number of the step."""

    word: str
    seq: int
    step: int


@dataclass(eq=False)
class Talks:
    """The conversations of a user: the words of each that are in its log, which are private, moments to look back
    to (the revision of each conversation after a step), and facts: of which agent, and the word that they have."""

    memory: Memory
    scope: Scope
    url: str
    said: dict[str, list[Word]] = field(default_factory=lambda: {name: list[Word]() for name in AGENTS})
    private: set[str] = field(default_factory=set[str])
    moments: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    facts: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    words: count[int] = field(default_factory=lambda: _names)
    step: int = 0

    def chat(self, name: str) -> Conversation:
        return self.memory.conversation(name, scope=replace(self.scope, agent=AGENTS[name]))

    async def do(self, step: Step) -> None:
        self.step += 1
        match step:
            case ("say", str(name), int(size), str(about)):
                chat = self.chat(name)
                for _ in range(size):
                    asked, answered = f"w{next(self.words)}q", f"w{next(self.words)}q"
                    done = await chat.append(
                        user(f"Of {about} I say {asked} now."), assistant(f"Noted of {about}: {answered}.")
                    )
                    self.said[name] += [Word(asked, done.start, self.step), Word(answered, done.end, self.step)]
                    self.moments[name] = self.moments.get(name, (done.rev, self.step))
            case ("remember", str(name), bool(remember)):
                await self.chat(name).configure(remember=remember, create=True)
                self.private = self.private - {name} if remember else self.private | {name}
            case ("erase", str(name), set(places)):
                log = await self.chat(name).messages()
                seqs = {place % len(log) for place in places} if log else set[int]()
                await self.chat(name).erase(seqs)
                self.said[name] = [one for one in self.said[name] if one.seq not in seqs]
            case ("delete", str(name)):
                await self.chat(name).delete()
                self.said[name].clear()
                self.private.discard(name)
                self.moments.pop(name, None)
            case ("fact", str(name)) if name not in self.private:
                chat, word = self.chat(name), f"w{next(self.words)}q"
                done = await chat.append(user(f"My boat is {word}."))
                self.facts[(await chat.remember(f"Has a boat {word}.")).id] = (AGENTS[name], word)
                await chat.append(assistant(f"I like {word}."))
                self.said[name] += [Word(word, seq, self.step) for seq in (done.end, done.end + 1)]
            case ("rewind", str(name), int(by)):
                if (head := await self.chat(name).head()) is not None:
                    to = max(head.last_seq - by, -1)
                    await self.chat(name).rewind(to=to)
                    self.said[name] = [one for one in self.said[name] if one.seq <= to]
                    self.moments.pop(name, None)
            case ("forget", str(name)):
                known = [fact for fact, (agent, _) in self.facts.items() if agent == AGENTS[name]]
                for fact in known[-1:]:
                    word = self.facts.pop(fact)[1]
                    if await self.memory.facts(self.chat(name).scope).get(fact) is not None:
                        await self.chat(name).append(user("Forget the boat."))  # not in the turn that tells of it
                        await self.chat(name).forget(fact)
                        await self.chat(name).append(assistant("Done."))
                        for theirs, said in self.said.items():
                            self.said[theirs] = [one for one in said if one.word != word]
                        assert {table for table, text in (await tables(self.url)).items() if word in text} == set()
            case ("digest", str(name)):
                await self.chat(name).configure(policy=DIGESTED, create=True)
                await self.memory.wait_for_digests()
            case _:
                await self.memory.wait_for_index()

    def allowed(self, name: str | None, *, agents: set[str], until: int | None = None) -> set[str]:
        """The words that may be shown in the conversation, or (None) be found from outside of any."""
        return {
            one.word
            for theirs, said in self.said.items()
            for one in said
            if (
                theirs == name or (name not in self.private and theirs not in self.private and AGENTS[theirs] in agents)
            )
            and (until is None or one.step <= until)
        }

    async def look(self, name: str, budget: int, asked: Mapping[str, Any], about: str) -> None:
        chat, question = self.chat(name), f"What did I say last time of {about}?"
        recall = asked.get("recall")
        everybody = isinstance(recall, RecallOptions) and recall.all_agents
        agents = {*AGENTS.values()} if everybody else {AGENTS[name]}
        known = set[str]() if name in self.private else await self.known(name, all_agents=everybody)
        try:
            context = await chat.context(question, budget=budget, **asked)
            assert words(context.request) <= self.allowed(name, agents=agents) | known
            await check(chat, context)
            if name in self.moments:
                rev, step = self.moments[name]
                past = await chat.context(question, budget=budget, at=rev, **asked)
                head = await chat.head()
                until = step if head is not None and head.rev > rev else None
                assert words(past.request) <= self.allowed(name, agents=agents, until=until) | known
        except BudgetExceeded:
            pass
        for all_agents in (False, True):
            found = await self.memory.recall(question, scope=chat.scope, all_agents=all_agents, limit=100)
            agents = {*AGENTS.values()} if all_agents else {AGENTS[name]}
            known = await self.known(name, all_agents=all_agents)
            assert words([hit.text for hit in found.hits]) <= self.allowed(None, agents=agents) | known

    async def known(self, name: str, *, all_agents: bool) -> set[str]:
        """The words that current facts have: contexts of the past have them too."""
        facts = await self.memory.facts(self.chat(name).scope, all_agents=all_agents).list(limit=1_000)
        return words([fact.content for fact in facts])


def words(shown: Any) -> set[str]:
    return set(re.findall(r"\bw\d+q\b", json.dumps(shown)))


@lasting
@settings(quick, max_examples=examples(6))
@given(
    private=st.sets(whose),
    digested=st.sets(whose),
    history=st.lists(st.tuples(steps, looks, looks), min_size=2, max_size=10),
)
async def test_what_conversations_show_of_each_other(
    store: Store, private: set[str], digested: set[str], history: list[tuple[Step, Any, Any]]
) -> None:
    """Nothing of a private one, nothing that was erased or forgotten, nothing of another agent or user, and in a
    private one nothing but its own; and each context holds what all contexts do."""
    assert isinstance(store, OpenStore)
    user_name = f"s{next(_names)}"
    async with open_on(store, relevance_threshold=0.0, embedder="none") as memory:
        beside = memory.conversation("a", scope=replace(SCOPE, user=f"{user_name} too"))
        await beside.append(user("Of the harbor I say w0q now."), assistant("Noted of a boat: w0q."))
        talks = Talks(memory, replace(SCOPE, user=user_name), store.owners_url)
        for name in AGENTS:
            for step in (
                *([("digest", name)] if name in digested else []),
                *([("remember", name, False)] if name in private else []),
                ("say", name, 4, ABOUT[0]),
                ("fact", name),
            ):
                await talks.do(step)
        await memory.wait_for_digests()
        for step, *looked in history:
            await talks.do(step)
            for look in looked:
                await talks.look(*look)
