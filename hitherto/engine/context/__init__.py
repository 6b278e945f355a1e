"""Contexts and views of a conversation."""
