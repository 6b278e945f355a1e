"""Documents: archived texts, and the passages they are cut into."""
