"""Lists of conversations, and of tenants, users and agents."""
