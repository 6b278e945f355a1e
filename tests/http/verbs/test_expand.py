"""What a policy took away, given back over HTTP."""

from __future__ import annotations

from tests.engine.test_expand import *  # noqa: F403

LEFT_OUT = {
    # An argument of a wrong type is refused as the document says, and not in the verb's own words.
    "test_what_is_nothing_to_expand",
    "test_what_is_no_budget",
}
