"""What an agent forgets, over HTTP."""

from __future__ import annotations

from tests.integrations.test_forgetting import *  # noqa: F403

KEPT = {
    "test_nothing_that_shows_other_conversations_shows_the_turn",
    "test_of_others_nothing",
    "test_so_many_a_turn_and_a_day",
    "test_what_three_days_have_told_is_forgotten_on_the_fourth",
}
