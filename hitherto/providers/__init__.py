"""Models, embedders and rerankers, a vendor's side by side."""
