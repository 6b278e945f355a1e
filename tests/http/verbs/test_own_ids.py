"""Ids of the application's own, over HTTP."""

from __future__ import annotations

from tests.engine.log.test_own_ids import *  # noqa: F403

KEPT = {
    "test_a_turn_takes_the_id_of_its_question_alone",
    "test_an_id_twice",
    "test_any_id_names_its_message",
    "test_nothing_new_writes_nothing",
    "test_what_was_erased_does_not_come_back",
}
