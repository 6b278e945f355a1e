"""Promises 2, 3 and 12 over whole histories: random verbs in two scopes against a list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Memory, Scope, assistant, sliding_window, user
from hitherto.errors import ConcurrentWrite, IdempotencyKeyReused
from hitherto.providers.scripted import Scripted, items
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.lengths import examples, lasting
from tests.memories import open_on

_names = count(1)
SCOPES = (SCOPE, Scope(tenant=SCOPE.tenant, user="u-18", agent=SCOPE.agent))

appends = st.tuples(
    st.just("append"),
    st.sampled_from([None, "k1", "k2", "k3"]),
    st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3),
    st.sampled_from([None, None, "right", "wrong"]),
)
steps = st.tuples(st.integers(0, 1), st.one_of(appends, appends, st.just(("clear",)), st.just(("delete",))))


class Model:
    """What one conversation must be: a list of texts, and what each key was given and answered."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.shown_from = 0
        self.keys: dict[str, tuple[list[str] | None, tuple[int, int]]] = {}


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model=Scripted(then=items("They talk."))) as opened:
        yield opened


@lasting
@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(steps, max_size=14))
async def test_2_3_12_histories(memory: Memory, history: list[tuple[int, tuple[Any, ...]]]) -> None:
    name = f"h{next(_names)}"
    chats = [memory.conversation(name, scope=scope, policy=sliding_window(window=4, after_seq=1)) for scope in SCOPES]
    models = [Model(), Model()]
    for which, step in history:
        chat, model = chats[which], models[which]
        if step[0] == "clear":
            assert await chat.clear() == len(model.log) - model.shown_from
            model.shown_from = len(model.log)
        elif step[0] == "delete":
            assert await chat.delete() == len(model.log)
            if model.log:
                model.keys = {key: (None, span) for key, (_, span) in model.keys.items()}
            model.log, model.shown_from = [], 0
        else:
            await _append(chat, model, *step[1:])
        for one, expected in zip(chats, models, strict=True):
            stored = await one.messages()
            assert [logged.seq for logged in stored] == list(range(len(expected.log)))
            assert [logged.message.text for logged in stored] == expected.log
    await memory.wait_for_digests()


async def _append(
    chat: hitherto.Conversation, model: Model, key: str | None, texts: list[str], how: str | None
) -> None:
    expect = {"right": len(model.log), "wrong": len(model.log) + 1}.get(how or "")
    batch = [user(text) if at % 2 == 0 else assistant(text) for at, text in enumerate(texts)]
    known = model.keys.get(key or "")
    if known is not None and known[0] not in (None, texts):
        with pytest.raises(IdempotencyKeyReused):
            await chat.append(*batch, key=key, expect=expect)
    elif known is not None:
        again = await chat.append(*batch, key=key, expect=expect)
        assert (again.replayed, (again.start, again.end)) == (True, known[1])
    elif how == "wrong":
        with pytest.raises(ConcurrentWrite):
            await chat.append(*batch, key=key, expect=expect)
    else:
        done = await chat.append(*batch, key=key, expect=expect)
        assert (done.replayed, done.start, done.end) == (False, len(model.log), len(model.log) + len(texts) - 1)
        model.log += texts
        if key is not None:
            model.keys[key] = (texts, (done.start, done.end))
