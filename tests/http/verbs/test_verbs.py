"""The verbs of a conversation, over HTTP."""

from __future__ import annotations

from tests.engine.test_verbs import *  # noqa: F403

KEPT = {
    "test_a_message_over_the_budget_says_by_how_much",
    "test_clear_hides_messages_and_digests_and_counts_them",
    "test_delete_erases_with_what_was_derived",
    "test_no_verb_without_a_scope",
    "test_reserve_and_tools_count",
    "test_the_first_context_is_rebuilt_and_tampered_manifests_are_refused",
    "test_the_policy_is_stored_and_the_next_one_builds_on_its_digests",
    "test_wait_gives_a_digest_that_is_in_progress_the_time_it_asks",
}
