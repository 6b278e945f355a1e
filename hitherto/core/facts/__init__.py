"""Facts: single statements about a subject; how they are read, merged and changed."""
