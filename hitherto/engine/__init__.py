"""The application layer behind the public API: append, context, digests, recall, facts and documents."""
