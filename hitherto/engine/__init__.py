"""The verbs: what happens when a message arrives, a context is asked for, a digest is due."""
