"""Doubles for tests: they do what a test tells them to."""
