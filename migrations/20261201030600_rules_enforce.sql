-- purpose: the triggers that keep rows immutable, lifecycles in order and tenants apart
-- compatible-from: 20261201030600
-- phase: expand

-- Every refusal is SQLSTATE 55000 and names the table. Trigger conditions stand in WHEN wherever they can: a row
-- that keeps the rule costs no function call.

create function occ.immutable_row() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = '55000', schema = tg_table_schema, table = tg_table_name,
    message = format('%s.%s: %s is refused, rows of this table never change', tg_table_schema, tg_table_name,
                     lower(tg_op));
end
$$;
comment on function occ.immutable_row() is 'Refuses the statement.';

create function occ.immutable_columns() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = '55000', schema = tg_table_schema, table = tg_table_name,
    message = format('%s.%s: %s never change', tg_table_schema, tg_table_name, tg_argv[0]);
end
$$;
comment on function occ.immutable_columns() is
  'Refuses an update; the trigger''s condition says when, its argument names the columns.';

create trigger immutable_row before update on occ.agent_revisions
  for each row execute function occ.immutable_row();
create trigger immutable_row before update or delete on occ.audit_events
  for each row execute function occ.immutable_row();
create trigger immutable_table before truncate on occ.audit_events
  for each statement execute function occ.immutable_row();
create trigger immutable_row before update or delete on occ.bootstrap_attempts
  for each row execute function occ.immutable_row();
create trigger immutable_row before delete on occ.installation
  for each row execute function occ.immutable_row();
create trigger immutable_table before truncate on occ.installation
  for each statement execute function occ.immutable_row();

create trigger immutable_columns before update on occ.installation for each row
  when ((old.id, old.name, old.bootstrap_attempt_id, old.created_at)
    is distinct from (new.id, new.name, new.bootstrap_attempt_id, new.created_at))
  execute function occ.immutable_columns('id, name, bootstrap_attempt_id, created_at');
create trigger immutable_columns before update on occ.namespaces for each row
  when ((old.id, old.name, old.existing_namespace) is distinct from (new.id, new.name, new.existing_namespace))
  execute function occ.immutable_columns('id, name, existing_namespace');
create trigger immutable_columns before update on occ.agents for each row
  when ((old.id, old.namespace_id, old.name, old.service_principal_id)
    is distinct from (new.id, new.namespace_id, new.name, new.service_principal_id))
  execute function occ.immutable_columns('id, namespace_id, name, service_principal_id');
create trigger immutable_columns before update on occ.configurations for each row
  when ((old.id, old.namespace_id, old.kind) is distinct from (new.id, new.namespace_id, new.kind))
  execute function occ.immutable_columns('id, namespace_id, kind');
create trigger immutable_columns before update on occ.secrets for each row
  when ((old.id, old.namespace_id, old.name, old.store)
    is distinct from (new.id, new.namespace_id, new.name, new.store))
  execute function occ.immutable_columns('id, namespace_id, name, store');
create trigger immutable_columns before update on occ.agent_credentials for each row
  when ((old.namespace_id, old.agent_id, old.name, old.store)
    is distinct from (new.namespace_id, new.agent_id, new.name, new.store))
  execute function occ.immutable_columns('namespace_id, agent_id, name, store');
create trigger immutable_columns before update on occ.iam_identities for each row
  when ((old.id, old.kind, old.namespace_id, old.agent_id, old.issuer, old.subject, old.created_at)
    is distinct from (new.id, new.kind, new.namespace_id, new.agent_id, new.issuer, new.subject, new.created_at))
  execute function occ.immutable_columns('all columns but label');
create trigger immutable_columns before update on occ.service_keys for each row
  when ((old.id, old.service_principal_id, old.keyable, old.namespace_id, old.name, old.prefix, old.key_hash,
         old.created_by, old.created_at, old.expires_at)
    is distinct from (new.id, new.service_principal_id, new.keyable, new.namespace_id, new.name, new.prefix,
         new.key_hash, new.created_by, new.created_at, new.expires_at))
  execute function occ.immutable_columns('all columns but last_used_at and revoked_at');
create trigger revoked_at_final before update on occ.service_keys for each row
  when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at)
  execute function occ.immutable_columns('revoked_at, once set,');
create trigger immutable_columns before update on occ.work for each row
  when ((old.key, old.kind, old.lane, old.namespace_id, old.agent_id, old.revision_id, old.created_at)
    is distinct from (new.key, new.kind, new.lane, new.namespace_id, new.agent_id, new.revision_id, new.created_at))
  execute function occ.immutable_columns('key, kind, lane, owners and created_at');

create function occ.namespace_lifecycle() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  if old.deleted_at is not null then
    raise exception using errcode = '55000', schema = 'occ', table = 'namespaces',
      message = 'occ.namespaces: a tombstone never changes';
  end if;
  if old.status <> new.status and not (
       (old.status = 'provisioning' and new.status in ('ready', 'failed', 'deleting'))
    or (old.status = 'failed' and new.status in ('provisioning', 'deleting'))
    or (old.status = 'ready' and new.status = 'deleting')) then
    raise exception using errcode = '55000', schema = 'occ', table = 'namespaces',
      message = format('occ.namespaces: status may not go from %s to %s', old.status, new.status);
  end if;
  if new.deleted_at is not null and (
       exists (select from occ.agents where namespace_id = new.id)
    or exists (select from occ.configurations where namespace_id = new.id)
    or exists (select from occ.secrets where namespace_id = new.id)) then
    raise exception using errcode = '55000', schema = 'occ', table = 'namespaces',
      message = 'occ.namespaces: a Namespace that holds agents, configurations or secrets cannot be tombstoned';
  end if;
  return new;
end
$$;
comment on function occ.namespace_lifecycle() is 'Keeps the order of Namespace states.';
create trigger namespace_lifecycle before update on occ.namespaces
  for each row execute function occ.namespace_lifecycle();

create function occ.agent_lifecycle() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = '55000', schema = 'occ', table = 'agents', message =
    case when old.status = 'deleting' and new.status <> 'deleting' then 'occ.agents: deleting is final'
         when new.status = 'deleting' then 'occ.agents: an Agent that is being deleted stays stopped'
         else 'occ.agents: last_revision_number never falls' end;
end
$$;
comment on function occ.agent_lifecycle() is 'Refuses an update of an Agent; the trigger''s condition says when.';
create trigger agent_lifecycle before update on occ.agents for each row
  when ((old.status = 'deleting' and new.status <> 'deleting')
    or (new.status = 'deleting' and new.desired_runtime_state <> 'stopped')
    or new.last_revision_number < old.last_revision_number)
  execute function occ.agent_lifecycle();

create function occ.configuration_generation() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = '55000', schema = 'occ', table = 'configurations',
    message = 'occ.configurations: each update raises generation by exactly one';
end
$$;
comment on function occ.configuration_generation() is 'Refuses an update that does not count.';
create trigger configuration_generation before update on occ.configurations for each row
  when (new.generation <> old.generation + 1)
  execute function occ.configuration_generation();

create function occ.secret_value_store() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from occ.secrets where id = new.secret_id and store = 'database') then
    raise exception using errcode = '55000', schema = 'occ', table = 'secret_values',
      message = 'occ.secret_values: the secret''s store is not database';
  end if;
  return new;
end
$$;
comment on function occ.secret_value_store() is 'Keeps values out of the database for every store but database.';
create trigger secret_value_store before insert or update of secret_id on occ.secret_values
  for each row execute function occ.secret_value_store();

create function occ.lane_epoch() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = '55000', schema = 'occ', table = 'work_lane',
    message = 'occ.work_lane: epoch never falls';
end
$$;
comment on function occ.lane_epoch() is 'Refuses an update that lowers the epoch.';
create trigger lane_epoch before update on occ.work_lane for each row
  when (new.epoch < old.epoch)
  execute function occ.lane_epoch();

create function occ.work_delete_guard() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = '55000', schema = 'occ', table = 'work',
    message = 'occ.work: only ended rows outside the deployment history may be deleted';
end
$$;
comment on function occ.work_delete_guard() is
  'Refuses the application to delete live work and the history of deployments.';
create trigger work_delete_guard before delete on occ.work for each row
  when (current_user = 'occ_app' and (old.state not in ('succeeded', 'failed_permanent')
    or old.kind = 'revision.reconcile' or old.kind like 'namespace.%'))
  execute function occ.work_delete_guard();

create function occ.iam_scope_guard() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
declare
  fault text;
begin
  if exists (select from occ.iam_roles
              where id = new.role_id and namespace_id is not null
                and namespace_id is distinct from new.namespace_id) then
    fault := 'the role belongs to another scope';
  elsif new.group_id is not null and exists (select from occ.iam_groups
              where id = new.group_id and namespace_id is distinct from new.namespace_id) then
    fault := 'the group belongs to another scope';
  elsif new.identity_id is not null and exists (select from occ.iam_identities
              where id = new.identity_id and namespace_id is not null
                and namespace_id is distinct from new.namespace_id) then
    fault := 'the identity belongs to another scope';
  elsif new.resource_kind is not null and not (case new.resource_kind
      when 'installation' then exists (select from occ.installation where id = new.resource_id)
      when 'namespace' then new.resource_id = new.namespace_id
      when 'configuration' then exists (select from occ.configurations
        where namespace_id = new.namespace_id and id = new.resource_id)
      when 'secret' then exists (select from occ.secrets
        where namespace_id = new.namespace_id and id = new.resource_id)
      when 'agent' then exists (select from occ.agents
        where namespace_id = new.namespace_id and id = new.resource_id)
      when 'agent_revision' then exists (select from occ.agent_revisions
        where namespace_id = new.namespace_id and id = new.resource_id)
      when 'service_account' then exists (select from occ.iam_identities
        where namespace_id = new.namespace_id and id = new.resource_id)
      else true end) then
    fault := 'the target does not lie in the scope of the binding';
  end if;
  if fault is not null then
    raise exception using errcode = '55000', schema = 'occ', table = 'iam_bindings',
      message = 'occ.iam_bindings: ' || fault;
  end if;
  return new;
end
$$;
comment on function occ.iam_scope_guard() is 'Keeps role, subject and target of a binding in its scope.';
create trigger iam_scope_guard before insert or update on occ.iam_bindings
  for each row execute function occ.iam_scope_guard();

create function occ.iam_role_scope_guard() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from occ.iam_roles where id = new.role_id and namespace_id is not null) then
    raise exception using errcode = '55000', schema = 'occ', table = 'iam_role_permissions',
      message = 'occ.iam_role_permissions: a Namespace role holds no permission on the Installation, and cannot '
                'create or delete Namespaces';
  end if;
  return new;
end
$$;
comment on function occ.iam_role_scope_guard() is 'Keeps Installation permissions out of Namespace roles.';
create trigger iam_scope_guard before insert or update on occ.iam_role_permissions for each row
  when (new.resource_kind = 'installation'
    or (new.resource_kind = 'namespace' and new.action in ('create', 'delete')))
  execute function occ.iam_role_scope_guard();

create function occ.iam_group_member_kind() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from occ.iam_identities where id = new.principal_id and kind <> 'principal') then
    raise exception using errcode = '55000', schema = 'occ', table = 'iam_group_members',
      message = 'occ.iam_group_members: only principals can be members';
  end if;
  return new;
end
$$;
comment on function occ.iam_group_member_kind() is 'Keeps everything but principals out of groups.';
create trigger iam_group_member_kind before insert or update on occ.iam_group_members
  for each row execute function occ.iam_group_member_kind();

create function occ.last_administrator() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  -- A membership of a Namespace group grants nothing on the Installation; of a group that is gone, the deletion
  -- of its bindings (they are on update restrict on delete restrict) was judged on its own.
  if tg_table_name = 'iam_group_members' then
    if not exists (select from occ.iam_groups where id = old.group_id and namespace_id is null) then
      return null;
    end if;
  end if;
  perform from occ.installation for update;
  if not found then
    return null; -- Before bootstrap there is nobody to lock out.
  end if;
  if not exists (
    select from occ.iam_bindings b
      join occ.iam_role_permissions p
        on p.role_id = b.role_id and p.action = 'administer' and p.resource_kind = 'installation'
      left join occ.iam_group_members m on m.group_id = b.group_id
      join occ.iam_identities i on i.id = coalesce(b.identity_id, m.principal_id)
      left join occ.users u on u.principal_id = i.id
     where b.namespace_id is null and b.resource_kind is null
       and i.namespace_id is null and u.disabled_at is null
  ) then
    raise exception using errcode = '55000', schema = 'occ', table = tg_table_name, constraint = 'last_administrator',
      message = format('occ.%s: the last enabled administrator of the Installation would be gone', tg_table_name);
  end if;
  return null;
end
$$;
comment on function occ.last_administrator() is
  'Refuses a transaction that would leave nobody who may administer the Installation.';

create constraint trigger last_administrator after delete on occ.iam_bindings
  deferrable initially deferred for each row
  when (old.namespace_id is null and old.resource_kind is null)
  execute function occ.last_administrator();
create constraint trigger last_administrator after delete on occ.iam_role_permissions
  deferrable initially deferred for each row
  when (old.action = 'administer' and old.resource_kind = 'installation')
  execute function occ.last_administrator();
create constraint trigger last_administrator after delete on occ.iam_group_members
  deferrable initially deferred for each row
  execute function occ.last_administrator();
create constraint trigger last_administrator after delete on occ.iam_identities
  deferrable initially deferred for each row
  when (old.namespace_id is null)
  execute function occ.last_administrator();
create constraint trigger last_administrator after update on occ.users
  deferrable initially deferred for each row
  when (old.disabled_at is null and new.disabled_at is not null)
  execute function occ.last_administrator();
