"""Facts on PostgreSQL."""
