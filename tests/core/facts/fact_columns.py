"""Facts in columns, as a store gives them, and how many of the labeled pairs a model is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice

import numpy as np

from hitherto.core.facts.known import known_facts_to_show, pieces
from hitherto.core.facts.relevance import FactColumns
from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.terms import analyzed
from hitherto.providers.wordllama import Wordllama
from tests.core.facts.fact_pairs import labeled_pairs

BESIDE, LONG = 9, 20


def columns(contents: Sequence[str], vectors: Mapping[int, Sequence[float]] | None = None) -> FactColumns:
    """What a store gives of facts with ids 1, 2, …; those in `vectors`, by place, have a vector."""
    terms = [analyzed(content) for content in contents]
    codes = coded = None
    if vectors is not None:
        made = np.zeros((len(contents), len(next(iter(vectors.values())))), dtype=np.float32)
        for at, vector in vectors.items():
            made[at] = vector
        codes, coded = codes_of(made), np.array([at in vectors for at in range(len(contents))], np.bool_)
    return FactColumns(
        ids=np.arange(1, len(contents) + 1, dtype=np.int64),
        sizes=np.array([len(one.hashes) for one in terms], np.int32),
        lengths=np.array([one.length for one in terms], np.int32),
        terms=np.concatenate([np.zeros(0, np.int64), *(one.hashes for one in terms)]),
        counts=np.concatenate([np.zeros(0, np.uint8), *(one.counts for one in terms)]),
        codes=codes,
        coded=coded,
    )


async def shares_shown(*, behind: int = 0, answers: int = 0, every: int = 1) -> tuple[float, float]:
    """Of the labeled repetitions and changes, the share whose known fact a model is shown: by words, and by words and
    vectors. `every`: 2 for every second pair. What is known are the first sentences of all pairs.
    The second one is in a user's message, at its end behind so many unrelated sentences; BESIDE other messages of users
    are one unrelated sentence each, and so many answers of the assistant are LONG unrelated sentences each."""
    pairs, embedder = labeled_pairs(), Wordllama()
    contents = list(dict.fromkeys(one.one for one in pairs))
    of_facts = (await embedder.documents(contents)).vectors.tolist()
    known = columns(contents, dict(enumerate(of_facts)))
    own, single = np.ones(len(contents), np.bool_), np.zeros(len(contents), np.bool_)
    unrelated = cycle([one.other for one in pairs if one.label == "unrelated"])
    wanted = [one for one in pairs if one.label in ("repetition", "change")][::every]
    by_words = by_meaning = 0
    for pair in wanted:
        users = [" ".join([*islice(unrelated, behind), pair.other]), *islice(unrelated, BESIDE)]
        said = pieces(users, [" ".join(islice(unrelated, LONG)) for _ in range(answers)])
        vectors, place = (await embedder.documents(list(said))).vectors, contents.index(pair.one)
        by_words += place in known_facts_to_show(known, said, None, own=own, single=single)
        by_meaning += place in known_facts_to_show(known, said, vectors, own=own, single=single)
    return by_words / len(wanted), by_meaning / len(wanted)
