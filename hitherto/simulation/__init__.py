"""Simulates what a policy would cost: a transcript is replayed request by request, and its tokens are priced."""
