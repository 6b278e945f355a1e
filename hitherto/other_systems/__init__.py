"""The words of other memory systems, a folder a system: see docs/coming-from.md."""
