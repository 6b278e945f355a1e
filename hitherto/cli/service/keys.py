"""`hitherto keys`: who may use the service."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from hitherto.cli import options
from hitherto.cli.app import group
from hitherto.cli.memory import with_memory
from hitherto.cli.options import LOCAL_TENANT
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, Column, day, fitted, name_column
from hitherto.core.key import ApiKey, Right, in_order

Size = Annotated[int | None, typer.Option(min=1, metavar="BYTES", help="The most bytes of a request.")]
Seconds = Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="The most seconds that a request takes.")]
_NAME = 14
"""The most columns of a name: in a terminal of 80, an id has room, a name, a user and when the key was revoked."""

Requests = Annotated[int | None, typer.Option(min=1, metavar="N", help="The most requests a minute, of each process.")]


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for, in words.")],
    tenant: options.Tenant = LOCAL_TENANT,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Make it for this user of the tenant alone.")] = None,
    rights: Annotated[
        str, typer.Option(metavar="RIGHTS", help="Of read, write, review and admin, with commas between them.")
    ] = "read,write",
    requests: Requests = None,
    size: Size = None,
    seconds: Seconds = None,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Make a key, and print its secret: it cannot be shown again."""
    new = with_memory(
        database,
        lambda memory: memory.keys(tenant).create(
            name,
            rights=[cast(Right, right.strip()) for right in rights.split(",")],
            user=user,
            requests=requests,
            size=size,
            seconds=seconds,
        ),
        read_only=False,
    )
    if as_json:
        output.print_json({**key_json(new.key), "secret": new.secret})
        return
    output.say(new.secret)
    whose = "any user" if user is None else f"the user {user!r}"
    output.warn(
        f"This key is for {whose} of the tenant {tenant!r}. Keep it now: only a hash of it is stored, so that it "
        "cannot be shown again."
    )


def list_(
    tenant: options.Tenant = LOCAL_TENANT, database: options.Database = None, as_json: options.Json = False
) -> None:
    """List the keys of a tenant, the oldest first."""
    listed = with_memory(database, lambda memory: memory.keys(tenant).list())
    if as_json:
        output.print_json({"tenant": tenant, "keys": [key_json(key) for key in listed]})
    elif not listed:
        output.say(f"Tenant {tenant!r} has no keys; make one: hitherto keys create NAME --tenant {tenant}")
    else:
        columns = [
            Column("id", [str(key.id) for key in listed], key=True),
            name_column("name", [key.name for key in listed], gives=1, most=_NAME),
            name_column("user", [key.user or NONE for key in listed], gives=2, most=_NAME),
            Column("revoked", [NONE if key.revoked_at is None else day(key.revoked_at) for key in listed], gives=3),
            Column("rights", [" ".join(in_order(key.rights)) for key in listed], gives=4),
            Column("created", [day(key.created_at) for key in listed], gives=5),
        ]
        output.show(fitted(None, columns))


def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `hitherto keys list` shows it.")],
    tenant: options.Tenant = LOCAL_TENANT,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Revoke a key, from the next request on."""
    revoked = with_memory(database, lambda memory: memory.keys(tenant).revoke(key), read_only=False)
    if as_json:
        output.print_json(key_json(revoked))
    else:
        output.say(f"The key {revoked.name!r} is revoked.")


def key_json(key: ApiKey) -> dict[str, Any]:
    return output.fields_of(key) | {"rights": in_order(key.rights)}


keys = group("keys", {"create": create, "list": list_, "revoke": revoke})
