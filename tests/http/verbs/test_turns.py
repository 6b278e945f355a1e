"""Turns, over HTTP."""

from __future__ import annotations

from tests.engine.conftest import *  # noqa: F403
from tests.engine.turn.conftest import *  # noqa: F403
from tests.engine.turn.test_answers import *  # noqa: F403
from tests.engine.turn.test_retries import *  # noqa: F403
from tests.engine.turn.test_steps import *  # noqa: F403

KEPT = {
    "test_a_retry_goes_on_from_the_steps",
    "test_a_retry_takes_back_what_broke_off",
    "test_a_stream_that_breaks_leaves_the_text_that_came",
    "test_a_streamed_answer_is_appended_with_its_question",
    "test_tools_and_the_request_made_anew",
}
