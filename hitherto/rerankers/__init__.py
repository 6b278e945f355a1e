"""Adapters that put found passages in order, one a file; `hitherto.ports.reranker` is their contract."""
