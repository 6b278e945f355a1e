"""Contexts: fitting a view, digests, facts and recalled passages into a token budget, with a receipt."""
