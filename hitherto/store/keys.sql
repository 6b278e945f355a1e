-- Keys to the service.

-- part: key_columns
id, tenant, user_id as user, rights, requests, size, seconds, name, created_at, revoked_at

-- name: add_key
-- Repeated, as when the answer to it was lost, it changes nothing.
insert into hitherto.api_key (tenant, id, user_id, name, hash, rights, requests, size, seconds)
values (%(tenant)s, %(id)s, %(user)s, %(name)s, %(hash)s, %(rights)s, %(requests)s, %(size)s, %(seconds)s)
on conflict (tenant, id) do update set name = excluded.name
returning {key_columns};

-- name: find_key
-- What the key of a secret, of any tenant, allows.
select id, tenant, user_id as user, rights, requests, size, seconds from hitherto.key_of(%(hash)s);

-- name: session_key
-- What a key allows, by its id, with the hash of its secret, which signs its sessions.
select id, tenant, user_id as user, rights, requests, size, seconds, hash
from hitherto.api_key where tenant = %(tenant)s and id = %(id)s and revoked_at is null;

-- name: keys
select {key_columns}
from hitherto.api_key where tenant = %(tenant)s order by created_at, id;

-- name: revoke_key
update hitherto.api_key set revoked_at = least(revoked_at, hitherto.clock())
where tenant = %(tenant)s and id = %(id)s
returning {key_columns};

-- name: forget_keys
-- Of a tenant, or of a user of it, those that were there when its erasure was asked for.
delete from hitherto.api_key
where tenant = %(tenant)s and %(user)s in ('', user_id) and created_at <= %(requested_at)s;
