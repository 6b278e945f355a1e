"""PostgreSQL's errors, translated to Hitherto's."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from hitherto.addresses import database_parts, shown_address
from hitherto.errors import Conflict, DatabaseReadOnly, DatabaseUnavailable, InvalidInput, StoreError

_CONNECTION_LOST = ("08", "57P", "25P03", "25P04")
"""Prefixes of the SQLSTATEs with which the server ends a connection: connection exceptions, shutdowns, and transactions
that exceed a timeout."""

_DUPLICATES = {
    "digest_one_in_progress": "a digest of this stage is already in progress in this conversation; let it end first",
    "digest_one_per_range": "this stage has a completed digest of this very range already; use that one",
    "fact_once": "another current fact of the user says the same about this subject; repeat or change that one",
    "message_by_own_id": "another message of the conversation has the same id; give each its own",
    "receipt_pkey": "this idempotency key has a receipt already; begin the unit of work with the key to be told",
}


@contextmanager
def ours() -> Generator[None]:
    """Translates the errors that psycopg raises inside to Hitherto's."""
    try:
        yield
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise DatabaseReadOnly(
            f"the database refuses to write ({error.diag.message_primary}); connect to the primary server, "
            "end its read-only mode (default_transaction_read_only), or open the memory without read_only"
        ) from error
    except psycopg.errors.UniqueViolation as error:
        taken = _DUPLICATES.get(error.diag.constraint_name or "", str(error.diag.message_primary))
        raise Conflict(f"nothing was written: {taken}") from error
    except psycopg.errors.NumericValueOutOfRange as error:
        raise InvalidInput(
            f"a number is larger than what is kept ({_first_line(error)}); give a smaller one"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the role may not do what the store needs ({error.diag.message_primary}); as the tables' owner, run: "
            "hitherto migrate --grant ROLE, where ROLE is this one"
        ) from error
    except psycopg.errors.LockNotAvailable as error:
        raise StoreError(
            "the conversation has been held by another transaction for longer than is waited for; see who it is in "
            "pg_stat_activity, and try again"
        ) from error
    except UnicodeEncodeError as error:
        raise StoreError(f"PostgreSQL's text has no lone surrogates ({error.reason}); replace them") from error
    except psycopg.Error as error:
        if not is_gone(error):
            raise StoreError(f"PostgreSQL refused a statement: {_first_line(error)}") from error
        raise DatabaseUnavailable(
            f"the connection to the database was lost ({_first_line(error)}); if a change was being committed, it "
            "is not known whether it was written: append again with the same key"
        ) from error


def unreachable(url: str, error: Exception, *, throwaway: bool = False) -> DatabaseUnavailable:
    """The error for a database that cannot be connected to, without its password."""
    if throwaway:
        return DatabaseUnavailable(
            f"there is no connection to memory: ({_first_line(error)}): all are in use, or its server has ended, and "
            "what was in it is gone; then open another memory"
        )
    return DatabaseUnavailable(
        f"cannot connect to the database at {shown_address(url)}: {_first_line(error)}; check that the server runs and "
        "that HITHERTO_DATABASE (or --database) names host, port, database and user"
    )


def checked_address(url: str) -> None:
    """Raises DatabaseUnavailable if `url` is not an address, or if a part of its password may be taken for something
    else: libpq's and the server's complaints would quote it."""
    try:
        database_parts(url)
    except ValueError:
        raise DatabaseUnavailable(
            "the database's address is neither a PostgreSQL URL nor key=value pairs, or it is not clear where its host "
            "begins; write it as postgresql://user@host:port/database, with special characters of the password "
            "percent-encoded (@ is %40, / is %2F), or as 'memory:' for a throw-away memory"
        ) from None


def is_gone(error: psycopg.Error) -> bool:
    """Whether there is no connection, or none any more."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_CONNECTION_LOST)
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
