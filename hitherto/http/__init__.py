"""The service and its client: Hitherto's verbs over HTTP."""
