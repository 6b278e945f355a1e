"""Endpoints over HTTP: where they are, how they fail, what their answers hold."""
