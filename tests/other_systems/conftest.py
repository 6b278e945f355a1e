"""A service for all tests of a module, with agents whose model answers as the module's `reply` says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest

from tests.databases import Databases
from tests.other_systems.served import AGENT, TOOLS, Service, served
from tests.providers.models.endpoint import Endpoint

_numbers = count(1)


@pytest.fixture(scope="module")
def endpoint(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    with Endpoint(request.module.reply) as found:
        yield found


@pytest.fixture
def model(endpoint: Endpoint) -> Endpoint:
    """Nothing has been asked of it."""
    endpoint.asked.clear()
    endpoint.reached.clear()
    return endpoint


@pytest.fixture(scope="module")
async def running(databases: Databases, endpoint: Endpoint) -> AsyncIterator[Service]:
    name = await databases.take()
    with served(databases.url(name), *TOOLS, agents=[AGENT], model=endpoint) as found:
        yield found
    await databases.give_back(name)


@pytest.fixture
def service(running: Service, model: Endpoint) -> Service:
    """One for all tests here, each of which has users of its own."""
    return running.of(f" {next(_numbers)}")
