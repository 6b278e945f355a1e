"""The language models that make digests, one adapter a file; `hitherto.ports.model` is their contract."""
