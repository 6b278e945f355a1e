"""Benchmarks, run by `python -m benchmarks`: ratios of two sides measured in one run, never a bare time."""
