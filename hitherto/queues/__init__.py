"""What carries digests to whoever makes them, one adapter a file; `hitherto.ports.queue` is their contract."""
