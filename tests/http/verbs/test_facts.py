"""Facts, over HTTP."""

from __future__ import annotations

from tests.engine.facts.conftest import *  # noqa: F403
from tests.engine.facts.test_adding import *  # noqa: F403
from tests.engine.facts.test_going import *  # noqa: F403
from tests.engine.facts.test_listing import *  # noqa: F403
from tests.engine.facts.test_sharing import *  # noqa: F403

KEPT = {
    "test_a_reviewer_who_looked_before_is_told",
    "test_confirming",
    "test_content_and_category",
    "test_nothing_of_it_is_left",
    "test_sources_open_the_messages",
    "test_there_and_back",
    "test_what_is_added_by_hand_is_certain_and_private",
    "test_what_is_not_given_stays",
    "test_what_was_superseded",
    "test_whose_and_about_whom",
}
