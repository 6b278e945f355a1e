"""Appending messages, retracting and erasing them."""
