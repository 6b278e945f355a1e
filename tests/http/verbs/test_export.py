"""Export and import, over HTTP."""

from __future__ import annotations

from tests.engine.test_export import *  # noqa: F403

KEPT = {
    "test_another_conversation_of_that_name_is_refused",
    "test_it_goes_on_where_it_is_imported",
    "test_progress_is_told",
    "test_what_is_imported_is_what_was_exported",
}
