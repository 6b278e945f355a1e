"""Adapters of the ports for models, embedders and rerankers, in a folder or module per vendor."""
