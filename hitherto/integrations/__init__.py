"""Integrations with agent frameworks: a package and an extra for each, and tools that suit any framework."""
