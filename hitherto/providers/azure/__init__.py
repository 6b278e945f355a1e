"""Azure OpenAI."""
