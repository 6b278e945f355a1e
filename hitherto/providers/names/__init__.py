"""The providers that settings name."""
