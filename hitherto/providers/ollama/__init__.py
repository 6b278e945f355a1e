"""Adapters for Ollama."""
