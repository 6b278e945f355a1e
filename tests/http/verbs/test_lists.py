"""Lists of conversations and scopes, over HTTP."""

from __future__ import annotations

from tests.engine.test_listing import *  # noqa: F403

KEPT = {
    "test_a_list_has_pages",
    "test_what_is_set_is_listed",
}
