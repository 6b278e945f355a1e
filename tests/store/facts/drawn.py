"""Histories of facts, drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hitherto.core.facts.fact import OTHER, FactAction
from hitherto.core.scope import THE_USER
from tests.store.facts.samples import MUM

ADA, BEN = "ada", "ben"
CONVERSATIONS = {"c": (ADA, THE_USER), "d": (ADA, MUM.id), "e": (ADA, MUM.id), "f": (BEN, MUM.id)}
CONTENTS = ("Swims.", "Sings.", "Fences.")

Step = tuple[Any, ...]

names = st.sampled_from(sorted(CONVERSATIONS))
users = st.sampled_from([ADA, BEN])
subjects = st.sampled_from([THE_USER, MUM.id])
categories = st.sampled_from(["hobby", "habit", OTHER])
contents = st.tuples(st.sampled_from(CONTENTS), categories)
alone = st.sampled_from([False, False, True])
places = st.integers(0, 20)
some_places = st.lists(places, min_size=1, max_size=2)
changes = st.sampled_from(
    [
        FactAction.EDITED,
        FactAction.CONFIRMED,
        FactAction.SHARED,
        FactAction.SHARED,
        FactAction.UNSHARED,
        FactAction.DELETED,
        FactAction.RESTORED,
        FactAction.RESTORED,
    ]
)

learning = st.tuples(
    st.just("learn"),
    names,
    st.lists(st.tuples(contents, some_places), min_size=1, max_size=2),
    places,
    alone,
    st.sampled_from([None, None, THE_USER, MUM.id]),
)
repeating = st.tuples(st.just("repeat"), names, places, some_places, st.none() | categories, alone)
adding = st.tuples(st.just("add"), users, subjects, contents, alone)
changing = st.tuples(st.just("change"), users, places, changes, contents, alone)
joining = st.tuples(st.just("members"), st.sampled_from([(), (ADA,), (ADA, BEN)]))
talking = st.tuples(st.just("talk"), names)
erasing = st.tuples(st.just("erase"), names, places)
taking_back = st.tuples(st.just("take back"), names, st.integers(1, 2))
deleting = st.tuples(st.just("delete"), names, st.booleans())
indexing = st.tuples(st.just("index"))

KINDS = [
    *(learning, learning, learning, learning, repeating, repeating, adding, adding, changing, changing, changing),
    *(joining, talking, talking, erasing, erasing, taking_back, taking_back, deleting, indexing),
]
histories = st.lists(st.sampled_from(KINDS).flatmap(lambda kind: kind), min_size=8, max_size=30)
