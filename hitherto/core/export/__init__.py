"""Exports: everything that is kept of a scope, a user or a tenant, as lines of JSON."""
