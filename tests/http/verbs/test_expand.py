"""What a policy took away, given back over HTTP."""

from __future__ import annotations

from tests.engine.test_expand import *  # noqa: F403

KEPT = {
    "test_a_digest_gives_back_what_it_digested",
    "test_an_unknown_digest",
}
