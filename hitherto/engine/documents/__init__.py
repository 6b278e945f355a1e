"""Documents of a user."""
