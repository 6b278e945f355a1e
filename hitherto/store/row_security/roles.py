"""The rights of a role that uses the schema without owning it, such as the service's."""

from __future__ import annotations

import psycopg
from psycopg import sql

from hitherto.errors import InvalidInput, StoreError
from hitherto.store import errors
from hitherto.store.connections.silence import connect

_PATIENCE = 10.0
"""Seconds to wait for a connection."""

_ASKED = """
select r.rolsuper or r.rolbypassrls,
       exists (select from pg_class c where c.relnamespace = 'hitherto'::regnamespace
               and pg_has_role(r.oid, c.relowner, 'usage'))
from pg_roles r where r.rolname = %s
"""

_VIEWS = """
select c.relname from pg_class c
where c.relnamespace = 'hitherto'::regnamespace and c.relkind = 'v'
  and not coalesce(c.reloptions @> '{security_invoker=true}', false)
"""
"""Views that read with their owner's rights, and so past row-level security: those that a migration left so."""

_UNPROTECTED = """
select string_agg(c.relname, ', ' order by c.relname) from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
where c.relnamespace = 'hitherto'::regnamespace and c.relkind in ('r', 'p') and not c.relrowsecurity
"""
"""Tables with rows of tenants and without row-level security, such as one of which a migration forgot that."""

_LACKS = """
select count(*) from pg_class c
where c.relnamespace = 'hitherto'::regnamespace
  and case c.relkind
      when 'S' then not has_sequence_privilege(%(role)s, c.oid, 'usage')
      when 'r' then not has_table_privilege(%(role)s, c.oid, 'select') or c.relname <> 'alembic_version' and not (
          has_table_privilege(%(role)s, c.oid, 'insert') and has_table_privilege(%(role)s, c.oid, 'update')
          and has_table_privilege(%(role)s, c.oid, 'delete'))
      when 'v' then not has_table_privilege(%(role)s, c.oid, 'select')
      else false end
"""
"""How many tables, sequences and views a role lacks rights to."""

_GRANTS = (
    "grant usage on schema hitherto to {}",
    "grant select, insert, update, delete on all tables in schema hitherto to {}",
    "revoke insert, update, delete on hitherto.alembic_version from {}",
    "grant usage on all sequences in schema hitherto to {}",
)


async def grant(url: str, role: str) -> bool:
    """Give a role what a service or a worker needs. The connection at `url` must be the schema's owner's. Returns
    whether it lacked any of it.

    Raises InvalidInput for a role that does not exist, and for one for which row-level security does not hold: a
    superuser, the owner, or one that may pass it. Raises StoreError, and gives nothing, where a table has rows of
    tenants and no row-level security.
    """
    errors.checked_address(url)
    name = sql.Identifier(role)
    try:
        async with await connect(url, patience=_PATIENCE) as connection, connection.transaction():
            found = await (await connection.execute(_ASKED, [role])).fetchone()
            if found is None:
                raise InvalidInput(f"there is no role {role!r}; make it first: CREATE ROLE … LOGIN PASSWORD …")
            if any(found):
                raise InvalidInput(
                    f"the role {role!r} is a superuser, owns Hitherto's tables or may pass row-level security, so that "
                    "nothing would keep tenants apart; take one that may not"
                )
            unprotected = await (await connection.execute(_UNPROTECTED)).fetchone()
            if unprotected is not None and unprotected[0] is not None:
                raise StoreError(
                    f"nothing would keep tenants apart in {unprotected[0]}: enable row-level security there, with a "
                    "policy on the tenant as the other tables have"
                )
            for (view,) in await (await connection.execute(_VIEWS)).fetchall():
                closed = sql.SQL("alter view hitherto.{} set (security_invoker = true)")
                await connection.execute(closed.format(sql.Identifier(view)))
            lacks = await (await connection.execute(_LACKS, {"role": role})).fetchone()
            if lacks == (0,):
                return False
            for statement in _GRANTS:
                await connection.execute(sql.SQL(statement).format(name))
            return True
    except psycopg.OperationalError as error:
        raise errors.unreachable(url, error) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused to give rights to {role!r}: {str(error).strip()}") from error
