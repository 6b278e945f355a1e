"""The verbs over HTTP: tests of the engine, one or two a verb, with a client and a service between."""
