"""The same verbs without `await`: for Flask, Django, Celery, scripts and notebooks."""
