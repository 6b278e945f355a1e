"""The ports to models: what writes digests, embeds, ranks and compacts."""
