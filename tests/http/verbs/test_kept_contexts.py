"""Kept contexts, over HTTP."""

from __future__ import annotations

from tests.engine.test_kept_contexts import *  # noqa: F403

LEFT_OUT = {
    # The housekeeping of all tenants is the service's own.
    "test_for_how_long",
    # It looks into the tables, which the role of a service sees nothing in.
    "test_instructions_and_tools_are_stored_once",
    # Where nothing is written, no key is made.
    "test_nothing_is_kept_where_nothing_is_written",
}
