"""Digests of the conversation's own sentences, without a language model."""
