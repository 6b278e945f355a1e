"""Facts: learned with digests, reviewed by people."""
