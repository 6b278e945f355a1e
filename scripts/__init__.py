"""The scripts of the project, of which tests use some."""
