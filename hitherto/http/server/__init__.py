"""The service: `app` has the routes, `gate` what stands before them, `endpoints` makes a route of each verb."""
