"""Makes the models, embedders and rerankers that the settings name."""
