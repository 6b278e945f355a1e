"""Histories of facts that random ones seldom come upon.

Ada talks about her mother in "d" and "e", Ben in "f"; each conversation begins with the messages 0 and 1, and facts are
counted from 0."""

from __future__ import annotations

from hitherto.core.facts.fact import OTHER, FactAction
from hitherto.core.scope import THE_USER
from tests.store.facts.drawn import ADA, BEN, Step
from tests.store.facts.samples import MUM

BOTH = ("members", (ADA, BEN))
NOBODY = 99


def learn(
    name: str, content: str, seq: int, *, over: int = NOBODY, category: str = "habit", alone: bool = False
) -> Step:
    """`over`: the place, among the current facts, of the one that it supersedes."""
    return ("learn", name, [((content, category), [seq])], over, alone, None)


def add(content: str, category: str = "habit", *, alone: bool = False) -> Step:
    return ("add", ADA, MUM.id, (content, category), alone)


def edit(at: int, content: str, category: str = "habit", *, alone: bool = False) -> Step:
    return ("change", ADA, at, FactAction.EDITED, (content, category), alone)


def change(at: int, action: FactAction, *, user: str = ADA, alone: bool = False) -> Step:
    return ("change", user, at, action, ("", ""), alone)


STORIES: dict[str, list[Step]] = {
    "a successor is taken back: of equals the newest holds again, and private": [
        *(BOTH, learn("e", "Swims.", 0), change(0, FactAction.SHARED), learn("d", "Sings.", 0, over=0), ("index",)),
        *(learn("e", "Swims.", 1), learn("d", "Fences.", 0, over=1), ("index",), ("take back", "d", 2)),
    ],
    "what was shared holds again for its owner alone, until it is shared again": [
        *(BOTH, learn("e", "Swims.", 0), change(0, FactAction.SHARED), learn("d", "Sings.", 0, over=0)),
        *(("take back", "d", 2), change(0, FactAction.SHARED), edit(0, "Fences."), ("members", (ADA,)), BOTH),
    ],
    "a chain is taken back: what was taken back itself is passed over": [
        *(learn("e", "Swims.", 0), learn("d", "Sings.", 0, over=0), learn("d", "Fences.", 1, over=0)),
        ("take back", "d", 2),
    ],
    "a chain is taken back one by one": [
        *(learn("e", "Swims.", 0), learn("d", "Sings.", 0, over=0), learn("d", "Fences.", 1, over=0)),
        *(("take back", "d", 1), ("take back", "d", 1)),
    ],
    "it does not hold again where a current one says the same": [
        *(learn("e", "Swims.", 0), learn("d", "Sings.", 0, over=0), learn("e", "Swims.", 1), ("take back", "d", 2)),
    ],
    "what a person confirmed is not taken back": [
        *(learn("e", "Swims.", 0), learn("d", "Sings.", 0, over=0), change(1, FactAction.CONFIRMED)),
        *(("take back", "d", 2), ("erase", "d", 0)),
    ],
    "a person restores: private, confirmed, found once it is indexed, and nothing else": [
        *(BOTH, learn("d", "Swims.", 0), change(0, FactAction.SHARED), learn("e", "Sings.", 0, over=0), ("index",)),
        *(change(0, FactAction.RESTORED, user=BEN), change(0, FactAction.RESTORED), change(0, FactAction.RESTORED)),
        *(("index",), edit(0, "Sings."), edit(0, "Fences."), ("take back", "d", 2)),
    ],
    "what is withdrawn is restored; what is deleted is not, and can be said anew": [
        *(
            learn("d", "Swims.", 0),
            ("take back", "d", 2),
            change(0, FactAction.RESTORED),
            change(0, FactAction.DELETED),
        ),
        *(change(0, FactAction.RESTORED), change(0, FactAction.CONFIRMED), add("Swims.")),
    ],
    "a successor is erased: nothing names it any more": [
        *(learn("e", "Swims.", 0), learn("d", "Sings.", 0, over=0), ("erase", "d", 0)),
    ],
    "a history forgets what erased messages said, and no other does": [
        *(learn("d", "Swims.", 0), edit(0, "Sings."), learn("d", "Fences.", 1), edit(1, "Swims.")),
        *(("erase", "d", 0), edit(0, "Fences.")),
    ],
    "two conversations say the same": [
        *(learn("d", "Swims.", 0), learn("e", "Swims.", 0), learn("e", "Swims.", 0), ("take back", "d", 2)),
        *(("erase", "d", 0), ("talk", "e"), learn("e", "Swims.", 2), ("erase", "e", 0), ("erase", "e", 2)),
    ],
    "a conversation is deleted, with its facts or without": [
        *(learn("d", "Swims.", 0), learn("d", "Sings.", 0), change(1, FactAction.CONFIRMED), add("Fences.")),
        *(learn("d", "Fences.", 1), ("delete", "d", False), ("talk", "d"), learn("d", "Swims.", 0)),
        *(learn("d", "Sings.", 0), learn("d", "Fences.", 1), ("delete", "d", True)),
    ],
    "facts about two subjects go with their messages": [
        ("learn", "d", [(("Swims.", "habit"), [0])], NOBODY, False, THE_USER),
        *(learn("d", "Swims.", 0), ("erase", "d", 0)),
    ],
    "a person adds what is known, and again, and it is said again": [
        *(learn("d", "Swims.", 0, category=OTHER), add("Swims.", OTHER), add("Swims.", "hobby"), add("Swims.", OTHER)),
        *(learn("d", "Swims.", 1), ("erase", "d", 0), ("erase", "d", 1)),
    ],
    "one value at a time, however it comes to be": [
        *(add("Swims.", "hobby"), add("Sings.", "hobby"), add("Fences.", "hobby", alone=True)),
        *(learn("d", "Swims.", 0, category="hobby", alone=True), learn("d", "Sings.", 0, category="hobby")),
        *(add("Swims.", "hobby", alone=True), edit(0, "Reads."), learn("d", "Sings.", 1, category="hobby")),
        *(add("Fences."), edit(5, "Fences.", "hobby", alone=True), edit(5, "Fences."), add("Sings.", "hobby")),
        *(change(3, FactAction.RESTORED, alone=True), ("repeat", "d", 0, [1], "hobby", True)),
    ],
    "of several in one digest the last stays": [
        ("learn", "d", [(("Swims.", "hobby"), [0]), (("Sings.", "hobby"), [1])], NOBODY, True, None),
    ],
    "what is said again ends what it supersedes, and takes a category": [
        *(add("Swims.", OTHER), add("Sings."), learn("d", "Sings.", 0, over=0), add("Swims.")),
        *(("repeat", "d", 0, [0], None, False), ("repeat", "d", 0, [1], "hobby", False)),
    ],
    "members see what is shared and current": [
        *(learn("d", "Swims.", 0), learn("f", "Sings.", 0), BOTH, change(0, FactAction.SHARED)),
        *(change(1, FactAction.SHARED, user=BEN), change(0, FactAction.SHARED), ("members", (BEN,)), BOTH),
        *(edit(0, "Fences."), change(1, FactAction.UNSHARED, user=BEN), change(0, FactAction.DELETED)),
    ],
    "another's fact, and one that is not current, change in no way": [
        *(learn("d", "Swims.", 0), add("Sings."), learn("d", "Fences.", 1, over=0), edit(1, "Fences.")),
        *(
            change(at, action, user=user)
            for user in (BEN, ADA)
            for at in (0, 1)
            for action in (FactAction.CONFIRMED, FactAction.SHARED, FactAction.UNSHARED, FactAction.DELETED)
        ),
    ],
    "what is found follows": [
        *(learn("d", "Swims.", 0), add("Sings."), ("index",), edit(0, "Fences."), ("index",)),
        *(change(1, FactAction.DELETED), learn("e", "Swims.", 0, over=0), ("index",), ("erase", "e", 0)),
    ],
}
