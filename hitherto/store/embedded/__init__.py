"""The PostgreSQL server that Hitherto runs for itself."""
