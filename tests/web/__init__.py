"""The inspector, over real HTTP, with row-level security, and in a real browser."""
