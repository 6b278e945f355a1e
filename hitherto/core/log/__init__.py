"""The log: messages, their groups, and the head, a state of the conversation that is known without reading messages."""
