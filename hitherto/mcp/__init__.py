"""The Model Context Protocol: an agent's memory as seven tools, two resources and two prompts."""
