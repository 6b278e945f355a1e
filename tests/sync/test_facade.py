"""The synchronous classes have what the asynchronous ones have: they are written from them by a script."""

from __future__ import annotations

import inspect

import pytest

import hitherto
from hitherto import (
    Conversation,
    Documents,
    Facts,
    Memory,
    Runs,
    SyncConversation,
    SyncDocuments,
    SyncFacts,
    SyncMemory,
    SyncRuns,
    SyncTurn,
    Turn,
)
from scripts import sync_facade

PAIRS = [
    (Memory, SyncMemory),
    (Conversation, SyncConversation),
    (Documents, SyncDocuments),
    (Facts, SyncFacts),
    (Runs, SyncRuns),
    (Turn, SyncTurn),
]


def test_the_module_is_current() -> None:
    assert sync_facade.OUTPUT.read_text(encoding="utf-8") == sync_facade.facade(), (
        "the signatures have changed; run: python scripts/sync_facade.py"
    )


@pytest.mark.parametrize(("original", "synchronous"), PAIRS)
def test_each_verb_is_there_with_its_signature(original: type, synchronous: type) -> None:
    left_out = sync_facade.LEFT_OUT.get(original.__name__, set())
    verbs = {
        name
        for name, value in vars(original).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in left_out
    }
    assert verbs <= set(vars(synchronous))
    for name in verbs:
        theirs, ours = inspect.signature(getattr(original, name)), inspect.signature(getattr(synchronous, name))
        assert ours.parameters == theirs.parameters, name
        returns = str(theirs.return_annotation)
        assert ours.return_annotation in (returns, f"Sync{returns}"), name
        assert not inspect.iscoroutinefunction(getattr(synchronous, name))


def test_open_sync_takes_what_open_takes() -> None:
    assert inspect.signature(hitherto.open_sync).parameters == inspect.signature(hitherto.open).parameters
