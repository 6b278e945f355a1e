"""The search index on PostgreSQL."""
