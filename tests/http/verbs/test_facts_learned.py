"""What digests teach, over HTTP."""

from __future__ import annotations

from tests.engine.facts.test_at_once import *  # noqa: F403
from tests.engine.facts.test_learn import *  # noqa: F403
from tests.engine.facts.test_when_they_come import *  # noqa: F403
