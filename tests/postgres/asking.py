"""Asking a database what is in it."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection, sql


async def rows(url: str, query: str | sql.Composed) -> list[dict[str, Any]]:
    """The rows of a query, by column."""
    async with await AsyncConnection[Any].connect(
        url, autocommit=True, options="-c search_path=hitherto,other_systems"
    ) as connection:
        cursor = await connection.execute(query.encode() if isinstance(query, str) else query)
        if cursor.description is None:
            return []
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]
