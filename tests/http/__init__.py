"""Tests of the service and its client, over real HTTP."""
