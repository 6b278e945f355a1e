"""Connections to the server: the pool, and how a connection that has fallen silent ends."""
