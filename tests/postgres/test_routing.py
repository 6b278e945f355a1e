"""One statement, one tenant: what a PostgreSQL that is distributed by tenant can send on to the one server that has it.

Read from the text, as a planner carries a condition from one relation over to another, where a router does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
from pglast import ast, enums, parse_sql

from hitherto.store.sql import SQL
from tests.databases import Databases
from tests.postgres.plans import Connection, nodes

ACROSS = {
    "due", "erasures", "index_due", "index_backlog", "find_key", "tenants_with_old_receipts",
    "tenants_with_ended_contexts", "tenants_with_unused_texts", "tenants_without_vectors", "due_digests", "rested",
    "unread", "unsettled", "backlog",
}  # fmt: skip
"""What asks all tenants, each by one function: what is due of anybody, and whose a key is."""

OF_ALL = {"costs", "tenants", "examine_undigested"}
"""An operator's sums, lists and checks of all tenants, or of one."""

ROUTED = [name for name in SQL if name not in ACROSS | OF_ALL]

VOLATILE = {"clock_timestamp", "timeofday", "random", "gen_random_uuid", "nextval", "setval", "set_config"}
CHANGING = VOLATILE | {"clock", "statement_timestamp", "now", "expiring"}
"""What has another value at another time."""


def below(root: Any) -> Iterator[Any]:
    """The nodes of a statement: `root` and all below it."""
    if isinstance(root, tuple):
        for one in root:
            yield from below(one)
    elif isinstance(root, ast.Node):
        yield root
        for name in root:
            yield from below(getattr(root, name))


def every(kind: type[ast.Node], root: Any) -> list[Any]:
    return [one for one in below(root) if isinstance(one, kind)]


def schema() -> list[Any]:
    folder = resources.files("hitherto.store").joinpath("migrations", "baseline")
    return [made.stmt for file in folder.iterdir() for made in parse_sql(file.read_text("utf-8"))]


SCHEMA = schema()
TENANTS = {
    made.relation.relname
    for made in every(ast.CreateStmt, tuple(SCHEMA))
    if any(column.colname == "tenant" for column in every(ast.ColumnDef, made))
}
VIEWS = {made.view.relname for made in every(ast.ViewStmt, tuple(SCHEMA))}
FUNCTIONS = {made.funcname[-1].sval: str(made.options) for made in every(ast.CreateFunctionStmt, tuple(SCHEMA))}


def numbered(name: str) -> str:
    """The statement with numbers for its values, the tenant's the first."""
    found = {"tenant": 1}
    text = re.sub(r"%\((\w+)\)[sb]", lambda one: f"${found.setdefault(one[1], len(found) + 1)}", SQL[name])
    return text.replace("%%", "%")


def bare(one: Any) -> Any:
    return bare(one.arg) if isinstance(one, ast.TypeCast) else one


def is_tenant(one: Any) -> bool:
    one = bare(one)
    return isinstance(one, ast.ParamRef) and one.number == 1


def column(one: Any) -> list[str]:
    """The parts of a column's name."""
    return [getattr(part, "sval", "*") for part in one.fields or ()] if isinstance(one, ast.ColumnRef) else []


def called(root: Any) -> set[str]:
    return {one.funcname[-1].sval for one in every(ast.FuncCall, root)}


def conjuncts(one: Any) -> list[Any]:
    if isinstance(one, ast.BoolExpr) and one.boolop is enums.BoolExprType.AND_EXPR:
        return [part for arg in one.args or () for part in conjuncts(arg)]
    return [] if one is None else [one]


def level(stmt: Any) -> tuple[list[Any], list[Any]]:
    """The relations of one SELECT, UPDATE or DELETE by itself, and its conditions."""
    relations, conditions = [getattr(stmt, "relation", None)], conjuncts(stmt.whereClause)
    waiting = list(getattr(stmt, "fromClause", None) or getattr(stmt, "usingClause", None) or ())
    while waiting:
        one = waiting.pop()
        relations.append(one)
        if isinstance(one, ast.JoinExpr):
            waiting += [one.larg, one.rarg]
            conditions += conjuncts(one.quals)
    return [one for one in relations if isinstance(one, ast.RangeVar)], conditions


def has_own(relation: Any, relations: list[Any], conditions: list[Any]) -> bool:
    """Whether the relation's own tenant is compared with the one that is asked for."""
    names = [[relation.alias.aliasname if relation.alias else relation.relname, "tenant"]]
    names += [["tenant"]] if len(relations) == 1 else []
    return any(
        isinstance(one, ast.A_Expr)
        and any(is_tenant(a) and column(b) in names for a, b in ((one.lexpr, one.rexpr), (one.rexpr, one.lexpr)))
        for one in conditions
    )


def breaches(name: str) -> Iterator[str]:
    """What of a statement a router does not take, or what an application's tables could be taken for."""
    stmt: Any = parse_sql(numbered(name))[0].stmt
    local = {one.ctename for one in every(ast.CommonTableExpr, stmt)}
    for one in below(stmt):
        match type(one).__name__:
            case "RangeVar":
                if one.schemaname is None and one.relname not in local and not one.relname.startswith("pg_"):
                    yield f"{one.relname} without a schema"
                if one.relname in VIEWS and name not in OF_ALL:
                    yield f"{one.relname} is a view"
            case "FuncCall" if one.funcname[-1].sval in FUNCTIONS:
                if len(one.funcname) == 1:
                    yield f"{one.funcname[0].sval}() without a schema"
                if name not in ACROSS and "hitherto." in FUNCTIONS[one.funcname[-1].sval]:
                    yield f"{one.funcname[-1].sval}() reads tables"
            case "SelectStmt" | "UpdateStmt" | "DeleteStmt" if name in ROUTED:
                if isinstance(one, ast.SelectStmt) and not (one.targetList or one.valuesLists or one.larg):
                    yield "a select of nothing"
                if VOLATILE & called(one.whereClause):
                    yield "a volatile function in a condition"
                relations, conditions = level(one)
                for relation in relations:
                    own = relation.relname not in TENANTS or has_own(relation, relations, conditions)
                    if relation.schemaname and not own:
                        yield f"{relation.relname} without its own tenant"
            case "CaseExpr" if isinstance(bare(one.arg), ast.ParamRef):
                yield "a case of a value"
            case "JoinExpr" if one.jointype is not enums.JoinType.JOIN_INNER:
                if isinstance(one.larg, ast.RangeSubselect) and every(ast.SelectStmt, one.larg)[0].valuesLists:
                    yield "an outer join from values"
            case _:
                pass
        if isinstance(one, ast.InsertStmt | ast.UpdateStmt | ast.DeleteStmt):
            yield from of_change(one)


def of_change(stmt: Any) -> Iterator[str]:
    """What of a change a router does not take."""
    conflict = getattr(stmt, "onConflictClause", None)
    if "tenant" in [one.name for one in getattr(conflict or stmt, "targetList", None) or ()]:
        yield "sets the tenant"
    if any(CHANGING & called(one) for one in every(ast.CaseExpr, stmt) + every(ast.CoalesceExpr, stmt)):
        yield "a time within case or coalesce"
    if CHANGING & called(conflict):
        yield "a time in on conflict"
    if isinstance(stmt, ast.InsertStmt):
        source: Any = stmt.selectStmt
        names = [one.name for one in stmt.cols or ()]
        rows = source.valuesLists or [[one.val for one in source.targetList]]
        whose = [row[names.index("tenant")] for row in rows if "tenant" in names]
        if not all(is_tenant(one) or column(one)[-1:] == ["tenant"] for one in whose):
            yield "inserts another tenant"
        if not source.valuesLists and not stmt.returningClause:
            yield "insert … select without returning"
    else:
        if VOLATILE & called(stmt):
            yield "a volatile function in a change"
        if not all(every(ast.ColumnRef, one) or every(ast.SubLink, one) for one in conjuncts(stmt.whereClause)):
            yield "a condition on values alone"


@pytest.mark.parametrize("name", SQL)
def test_a_statement_is_of_one_tenant(name: str) -> None:
    assert list(breaches(name)) == []


async def test_every_scan_looks_for_the_tenant(databases: Databases) -> None:
    """By a condition of its own, whatever values a plan is made for."""
    database = await databases.take()
    async with await Connection.connect(databases.url(database), autocommit=True) as connection:
        await connection.execute("set plan_cache_mode = force_generic_plan")
        for number, name in enumerate([name for name in ROUTED if "%(tenant)s" in SQL[name]]):
            text = numbered(name)
            await connection.execute(f"prepare routed_{number} as {text}".encode())
            values = ", ".join(["null"] * max(map(int, re.findall(r"\$(\d+)", text)), default=0))
            explained = f"explain (format json, verbose) execute routed_{number}" + (f"({values})" if values else "")
            row = await (await connection.execute(explained.encode())).fetchone()
            assert row is not None
            for node in nodes(row[0][0]["Plan"]):
                if node.get("Relation Name") in TENANTS and node["Node Type"] not in (
                    "ModifyTable",
                    "Bitmap Heap Scan",
                ):
                    conditions = [str(node.get(kind)) for kind in ("Index Cond", "Filter")]
                    assert any(re.search(r"tenant = \$1\b", one) for one in conditions), (name, node)
                assert not node.get("Function Name", "").startswith("hitherto."), name
    await databases.give_back(database)
