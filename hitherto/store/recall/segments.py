"""Packs entries of the search index side by side in segments, so that a search reads few rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from hitherto.core.recall.filter import FURTHER
from hitherto.store.recall.search import SEGMENT
from hitherto.store.sql import SQL


async def pack(connection: AsyncConnection[Any], at: dict[str, Any], *, next_no: int, packed: int) -> None:
    """Pack one full segment of entries that are in none; if there are not enough, rebuild one with deleted entries. In
    the open transaction."""
    if next_no - packed >= SEGMENT:
        await _pack(connection, at, packed // SEGMENT)
        await connection.execute(SQL["index_packed"], {**at, "packed": packed + SEGMENT})
        return
    row = await (await connection.execute(SQL["index_stale_segment"], at)).fetchone()
    if row is not None:
        await _pack(connection, at, row[0])
        for space, _, coded in await (await connection.execute(SQL["index_fillings"], at)).fetchall():
            if coded >= (row[0] + 1) * SEGMENT:
                await _pack_codes(connection, at, space, row[0])
    await connection.execute(SQL["index_tidy"], at)


async def pack_codes(connection: AsyncConnection[Any], at: dict[str, Any]) -> None:
    """Pack the codes of one segment in each space in which all its entries have a vector."""
    row = await (await connection.execute(SQL["index_hold"], at)).fetchone()
    packed = 0 if row is None else row[1]
    for space, embedded, coded in await (await connection.execute(SQL["index_fillings"], at)).fetchall():
        if min(embedded, packed) - coded >= SEGMENT:
            await _pack_codes(connection, at, space, coded // SEGMENT)
            await connection.execute(SQL["index_coded"], {**at, "space": space, "coded": coded + SEGMENT})


async def _pack(connection: AsyncConnection[Any], at: dict[str, Any], segment: int) -> None:
    first = segment * SEGMENT
    values = {**at, "segment": segment, "first": first, "stop": first + SEGMENT}
    cursor = await connection.execute(SQL["index_members"], values, binary=True)
    members = await cursor.fetchall()
    await connection.execute(SQL["index_drop_segment"], values)
    if not members:
        return
    columns, postings = await asyncio.to_thread(_packed, members, first)
    await connection.execute(SQL["index_segment"], {**values, **columns})
    if postings["terms"]:
        await connection.execute(SQL["index_postings"], {**values, **postings})


def _packed(members: Sequence[Any], first: int) -> tuple[dict[str, bytes], dict[str, list[Any]]]:
    """What `index_segment` and `index_postings` bind of the entries of a segment, which are numbered from `first`."""
    columns = {
        "lengths": np.zeros(SEGMENT, "<u2"),
        "kinds": np.zeros(SEGMENT, np.uint8),
        "origins": np.zeros(SEGMENT, "<i8"),
        "places": np.zeros(SEGMENT, "<i8"),
        "times": np.zeros(SEGMENT, "<f8"),
    }
    hashes: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.uint8]] = []
    owners: list[NDArray[np.uint16]] = []
    for no, kind, further, origin, place, length, said_at, terms, times_in in members:
        offset = no - first
        told = (length, kind + (FURTHER if further else 0), origin, place, said_at)
        for column, value in zip(columns.values(), told, strict=True):
            column[offset] = value
        hashes.append(np.frombuffer(terms, "<i8"))
        counts.append(np.frombuffer(times_in, np.uint8))
        owners.append(np.full(len(hashes[-1]), offset, "<u2"))
    terms = np.concatenate(hashes)
    order = np.argsort(terms, kind="stable")
    distinct, starts = np.unique(terms[order], return_index=True)
    every_owner = np.split(np.concatenate(owners)[order], starts[1:])
    every_count = np.split(np.concatenate(counts)[order], starts[1:])
    postings = {
        "terms": distinct.tolist(),
        "offsets": [one.tobytes() for one in every_owner],
        "counts": [one.tobytes() for one in every_count],
    }
    return {name: column.tobytes() for name, column in columns.items()}, postings


async def _pack_codes(connection: AsyncConnection[Any], at: dict[str, Any], space: int, segment: int) -> None:
    first = segment * SEGMENT
    values = {**at, "space": space, "segment": segment, "first": first, "stop": first + SEGMENT}
    found = await (await connection.execute(SQL["index_member_codes"], values, binary=True)).fetchall()
    await connection.execute(SQL["index_drop_codes"], values)
    if not found:
        return
    codes = np.zeros((SEGMENT, len(found[0][1])), np.uint8)
    for no, code in found:
        codes[no - first] = np.frombuffer(code, np.uint8)
    await connection.execute(SQL["index_codes"], {**values, "codes": codes.tobytes()})
