"""Policies: triggers, keeps, actions and renders; which stages are due, and what a view shows."""
