"""Transcript files: conversations to replay, simulate and measure with."""
