"""The verbs of a conversation, over HTTP."""

from __future__ import annotations

from tests.engine.test_verbs import *  # noqa: F403

LEFT_OUT = {
    # The housekeeping of all tenants is the service's own.
    "test_a_clock_that_was_ahead_erases_nothing",
    # An argument of a wrong type is refused as the document says, and not in the verb's own words.
    "test_a_budget_is_a_positive_number",
    "test_unusable_keys_manifests_revisions",
    "test_what_cannot_be_used_is_refused_in_our_words",
    # A client closes its connections, and not the worker of the service.
    "test_closing_hands_back_what_is_in_hand",
    "test_closing_hands_back_what_was_not_begun",
}
