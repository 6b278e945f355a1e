"""Recall: terms, scores, filters and the order of what is found."""
