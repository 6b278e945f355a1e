"""The pure part: no await, no clock, no environment, no database."""
