"""Conversations and messages: heads, lists, erasures."""
