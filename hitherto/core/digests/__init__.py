"""Digests: the prompts, the reading of a model's answers, and the records made from them."""
