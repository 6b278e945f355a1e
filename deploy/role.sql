-- The role of the service and the workers, which owns nothing. Its password is in SERVICE_PASSWORD.
\getenv password SERVICE_PASSWORD
select not exists (select from pg_roles where rolname = 'hitherto_service') as missing \gset
\if :missing
create role hitherto_service login;
\endif
alter role hitherto_service password :'password';
