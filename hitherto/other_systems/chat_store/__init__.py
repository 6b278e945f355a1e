"""A chat store with a rolling synopsis: its paths."""
