"""`hitherto documents`: a user's knowledge base."""

from hitherto.cli.documents.command import documents as documents
