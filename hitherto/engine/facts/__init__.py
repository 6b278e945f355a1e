"""Facts: learnt with digests, reviewed by people."""
