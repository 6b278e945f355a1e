-- What a database and its role have for themselves.

-- The identities of each database begin in a range of its own, so that rows can move to another with theirs: a thousand million
-- times a number by chance, or the number in the setting hitherto.id_range. The greatest is exact in a double.
do $$
declare
    place bigint := coalesce(nullif(current_setting('hitherto.id_range', true), '')::bigint, 1 + floor(random() * 8999999)::bigint);
    one record;
begin
    if place not between 0 and 8999999 then
        raise exception 'hitherto.id_range is %; it must be from 0 to 8999999', place;
    end if;
    for one in
        select c.relname as name, a.attname as id from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attidentity <> '' and a.atttypid = 'bigint'::regtype
        where c.relnamespace = 'hitherto'::regnamespace
    loop
        execute format('alter table hitherto.%I alter column %I restart with %s', one.name, one.id, place * 1000000000 + 1);
    end loop;
end $$;

-- A role that is named as this schema would find our tables and views wherever a program names its own without a schema: the
-- default search_path begins with "$user".
do $$
begin
    if current_user = 'hitherto' and current_setting('search_path') = '"$user", public' then
        execute format('alter role hitherto in database %I set search_path = public', current_database());
    end if;
exception when internal_error then  -- another database's set-up does the same just now
end $$;
