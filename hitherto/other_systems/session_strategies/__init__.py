"""Strategies for the sessions of an agent SDK, with their switches, and the loop that runs an agent."""
