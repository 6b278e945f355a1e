"""Where conversations are kept: one store a module."""
