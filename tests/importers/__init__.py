"""Importers: each against the program that writes the format, where it can be installed."""
