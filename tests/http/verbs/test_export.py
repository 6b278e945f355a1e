"""Export and import, over HTTP."""

from __future__ import annotations

from tests.engine.test_export import *  # noqa: F403

LEFT_OUT = {
    # The keys of a tenant are erased with it.
    "test_erased_after_it_was_imported_again",
}
