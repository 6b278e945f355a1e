"""Digests in the background: set off, made by workers, written behind a fence."""
