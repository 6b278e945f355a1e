"""How long a test waits for what has to come."""

from __future__ import annotations

PATIENCE = 900.0
"""Seconds after which what is waited for is taken to hang. Nothing is judged by it: a slow machine takes longer."""
