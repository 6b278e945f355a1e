"""Writing and taking back messages."""
