"""Digests: what a model is asked, how its answer is read, and what comes of it."""
