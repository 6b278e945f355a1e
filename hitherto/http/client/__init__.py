"""The client: a memory whose verbs are requests to a service."""

from __future__ import annotations

from hitherto.http.client.connect import connect, connect_sync

__all__ = ["connect", "connect_sync"]
