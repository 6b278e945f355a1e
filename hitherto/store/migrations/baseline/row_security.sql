-- Row-level security, beside the condition on the tenant that every statement has. A role that owns none of this, and
-- may not pass row-level security, sees and writes only rows of the tenant that its transaction has set
-- (`set local hitherto.tenant = …`), and none without one. The owner passes: it migrates, and looks across tenants.

do $$
declare one record;
begin
    for one in
        select c.relname as name from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
        where c.relnamespace = 'hitherto'::regnamespace and c.relkind = 'r'
    loop
        execute format('alter table hitherto.%I enable row level security', one.name);
        execute format(
            'create policy of_tenant on hitherto.%I using (tenant = current_setting(''hitherto.tenant'', true))', one.name);
    end loop;
    -- A view reads with its owner's rights, and so past row-level security, unless it is told otherwise.
    for one in
        select c.relname as name from pg_class c
        where c.relnamespace = 'hitherto'::regnamespace and c.relkind = 'v'
    loop
        execute format('alter view hitherto.%I set (security_invoker = true)', one.name);
    end loop;
end $$;
