"""Adapters for any endpoint with OpenAI's API: OpenAI, vLLM, llama.cpp, LM Studio, a gateway."""
