"""Forks, over HTTP."""

from __future__ import annotations

from tests.engine.log.test_forks import *  # noqa: F403

KEPT = {"test_a_fork_goes_on_by_itself", "test_it_is_erased_everywhere", "test_what_cannot_be_forked"}
