"""Erasing messages, users and tenants, over HTTP."""

from __future__ import annotations

from tests.engine.log.test_erase import *  # noqa: F403

KEPT = {
    "test_a_user_is_erased_with_all_agents",
    "test_at_once_no_verb_shows_it",
}
