"""The inspector: web pages in which people look into a memory, and put it right."""
