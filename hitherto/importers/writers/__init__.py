"""Writing what a file has to a memory that may have a part of it already, and more."""
