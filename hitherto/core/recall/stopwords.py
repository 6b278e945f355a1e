"""English stop words, and polite words, which say nothing about what a question is about. Recall's terms go by them
(`terms.py`), the weights of the built-in embedder, and digests without a model."""

from __future__ import annotations

_FUNCTION_WORDS = """
    a about after again all also am an and any are as at be because been before being both but by can cant could
    couldnt did didnt do does doesnt doing dont down during each ever every few for from further get gets getting got
    had hadnt has hasnt have havent having he her here hers herself him himself his how i if in into is isnt it its
    itself just let many me might more most much must my myself no nor not now of off on once one only or other our
    ours ourselves out over own please same shall she should shouldnt so some such tell than that the their theirs
    them themselves then there these they this those through to too under until up us very was wasnt we were werent
    what whats when where whether which while who whom whose why will with without wont would wouldnt yet you your
    yours yourself yourselves
"""

_OF_CONVERSATION = """
    discuss discussed discussing earlier mention mentioned mentioning mentions previously recall recalled remember
    remind reminded said say saying says talk talked talking talks telling tells told
"""
"""Questions to a memory have these words, whatever they are about."""

STOP_WORDS = frozenset([*_FUNCTION_WORDS.split(), *_OF_CONVERSATION.split()])

POLITE_WORDS = frozenset(
    {
        *("thanks", "thank", "please", "sure", "cool", "great", "nice", "wow"),
        *("ok", "okay", "yes", "no", "yeah", "yep", "nope"),
        *("hi", "hello", "hey", "bye"),
    }
)
"""Words of greetings and short answers: they can be searched for, but a match on them alone says nothing."""
