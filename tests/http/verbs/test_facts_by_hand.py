"""What a person does to facts, over HTTP."""

from __future__ import annotations

from tests.engine.facts.test_by_hand import *  # noqa: F403

LEFT_OUT = {
    # An argument of a wrong type is refused as the document says, and not in the verb's own words.
    "test_a_version_that_is_none",
}
