-- Makes the two roles of an Installation, in the database this script is connected to.
--
-- Run by a database administrator, as often as wished: psql -d DATABASE -v ON_ERROR_STOP=1 -f roles.sql
-- It sets no password. Either let pg_hba.conf decide (peer, trust, cert, Entra), or afterwards:
--   alter role occ_migrator password '...';  alter role occ_app password '...';
--
-- occ_migrator owns both schemas and runs `occ-host migrate`. occ_app serves: it owns nothing and holds what
-- the migrations grant to it. Neither is a member of the other.

do $roles$
declare
  role_name text;
begin
  foreach role_name in array array['occ_migrator', 'occ_app'] loop
    begin
      execute format('create role %I login', role_name);
    exception
      when duplicate_object or unique_violation then null; -- Made before, or by a run beside this one.
    end;
    -- A managed server forbids naming SUPERUSER and REPLICATION at all, so only a difference is repaired.
    if exists (
      select from pg_catalog.pg_roles
       where rolname = role_name
         and (not rolcanlogin or rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls)
    ) then
      execute format(
        'alter role %I login nosuperuser nocreatedb nocreaterole noreplication nobypassrls', role_name);
    end if;
  end loop;

  -- The migrator creates the schemas; the application creates nothing. Both may connect.
  execute format('grant connect, create on database %I to occ_migrator', current_database());
  execute format('revoke create on database %I from public, occ_app', current_database());
  execute format('grant connect on database %I to occ_app', current_database());
end
$roles$;

-- Bounds of every connection of the application, behind a transaction pooler too.
alter role occ_app set statement_timeout = '10s';
alter role occ_app set lock_timeout = '2s';
alter role occ_app set idle_in_transaction_session_timeout = '10s';
alter role occ_app set search_path = pg_catalog, occ;
