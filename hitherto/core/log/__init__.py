"""The log: messages, groups of them, and what is known of a conversation without reading it."""
