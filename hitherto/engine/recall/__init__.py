"""Recall: search, and the index behind it."""
