"""How large a page is: what is read of the database, held and sent at once."""

from __future__ import annotations

PAGE_SIZE = 4_000_000
"""Bytes after which a page ends, whatever its limit in number. It has at least one entry, however large that is."""

PAGE_ENTRY = 500
"""What each entry of a page counts for beside its texts, in bytes."""
