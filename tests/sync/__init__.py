"""Tests of the synchronous classes."""
