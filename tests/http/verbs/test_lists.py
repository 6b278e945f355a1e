"""Lists of conversations and scopes, over HTTP."""

from __future__ import annotations

from tests.engine.test_listing import *  # noqa: F403

LEFT_OUT = {
    # Without a tenant, a list is of the key's tenant.
    "test_scopes_have_pages_and_count_documents_and_facts",
    "test_scopes_that_cannot_be_asked_for",
}
