"""The search index in memory."""
