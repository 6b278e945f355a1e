"""Erasing messages, users and tenants, over HTTP."""

from __future__ import annotations

from tests.engine.log.test_erase import *  # noqa: F403

LEFT_OUT = {
    # The keys of a tenant are erased with it.
    "test_a_tenant_is_erased",
}
