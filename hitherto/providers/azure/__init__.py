"""Adapters for Azure OpenAI."""
