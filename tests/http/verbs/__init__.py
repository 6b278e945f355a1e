"""The verbs keep their promises over HTTP: the tests of the engine, run once more with a client and a service."""
