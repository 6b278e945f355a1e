"""Adapters that turn texts into vectors, one a file."""
