"""No model at all: digests of the conversation's own sentences."""
