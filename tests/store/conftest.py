"""The store, as the owner of its tables and as a service's role.

The cases run as the owner, those of scopes as both. TEST_AS_ROLE=1 runs all of them as the role; TEST_SERVER names
another server, by a superuser's URL.
"""

from __future__ import annotations

import os

import pytest

from tests.databases import Databases, OpenStore

AS_ROLE = bool(os.environ.get("TEST_AS_ROLE"))

AS_BOTH = pytest.mark.parametrize("store", ["owner", "role"], indirect=True)
"""The walls hold by the statements' own conditions, and for a role by row-level security too."""


AS_OWNER = pytest.mark.parametrize("store", ["owner"], indirect=True)
"""What asks for all tenants, which the role does not see: `test_role`."""


@pytest.fixture
async def store(request: pytest.FixtureRequest, databases: Databases) -> OpenStore:
    """An open and empty store."""
    role = getattr(request, "param", "role" if AS_ROLE else "owner")
    return await databases.store(row_security=role == "role")
