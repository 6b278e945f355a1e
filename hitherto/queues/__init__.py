"""Job queues that hand due digests to workers, one adapter a file; `hitherto.ports.queue` is their contract."""
