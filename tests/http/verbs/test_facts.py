"""Facts, over HTTP."""

from __future__ import annotations

from tests.engine.facts.conftest import *  # noqa: F403
from tests.engine.facts.test_adding import *  # noqa: F403
from tests.engine.facts.test_going import *  # noqa: F403
from tests.engine.facts.test_listing import *  # noqa: F403
from tests.engine.facts.test_sharing import *  # noqa: F403

LEFT_OUT = {
    # An argument of a wrong type is refused as the document says, and not in the verb's own words.
    "test_content_that_says_nothing_is_refused",
    "test_what_is_no_category_is_refused",
    "test_whether_a_context_shows_facts_is_yes_or_no",
    "test_what_cannot_be_asked_for",
    "test_a_visibility_that_does_not_exist",
    "test_what_is_no_number",
    # The housekeeping of all tenants is the service's own.
    "test_what_expires_takes_along_what_it_alone_says",
    "test_messages_that_expire_while_they_are_digested",
}
