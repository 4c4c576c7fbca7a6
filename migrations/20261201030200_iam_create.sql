-- purpose: identities, groups, roles, bindings and restrictions
-- compatible-from: 20261201030200
-- phase: expand

create table occ.iam_identities (
  id text collate "C" not null
    constraint iam_identities_id_format
      check (id ~ '^(prn|spn)_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  kind text collate "C" not null
    constraint iam_identities_kind_known check (kind in ('principal', 'service_principal')),
  namespace_id text collate "C",
  agent_id text collate "C",
  issuer text collate "C"
    constraint iam_identities_issuer_length check (length(issuer) between 1 and 2048),
  subject text collate "C"
    constraint iam_identities_subject_length check (length(subject) between 1 and 1024),
  label text collate "C"
    constraint iam_identities_label_length check (length(label) between 1 and 200),
  keyable boolean generated always as (kind = 'service_principal' and agent_id is null) stored not null,
  created_at timestamptz not null default now(),
  constraint iam_identities_pkey primary key (id),
  constraint iam_identities_agent_owner_key unique (namespace_id, agent_id, id),
  constraint iam_identities_issuer_subject_key unique (issuer, subject),
  constraint iam_identities_keyable_key unique (id, keyable),
  constraint iam_identities_kind_prefix check ((kind = 'principal') = (id like 'prn\_%')),
  constraint iam_identities_kind_columns check (case kind
    when 'principal' then num_nonnulls(issuer, subject) = 2 and num_nonnulls(namespace_id, agent_id) = 0
    else num_nonnulls(issuer, subject) = 0 and (agent_id is null or namespace_id is not null) end),
  constraint iam_identities_agent_fkey foreign key (namespace_id, agent_id)
    references occ.agents (namespace_id, id) on update no action on delete no action deferrable initially deferred,
  constraint iam_identities_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.iam_identities is
  'Principals (humans) and ServicePrincipals (automation, and one for each Agent).';
comment on column occ.iam_identities.id is 'Identity id; the prefix follows the kind.';
comment on column occ.iam_identities.kind is 'principal or service_principal.';
comment on column occ.iam_identities.namespace_id is 'Scope; absent for the Installation.';
comment on column occ.iam_identities.agent_id is 'The Agent whose own identity this is.';
comment on column occ.iam_identities.issuer is 'Who vouches for a principal.';
comment on column occ.iam_identities.subject is 'The principal''s name at its issuer; never changes.';
comment on column occ.iam_identities.label is 'Display text, grants nothing.';
comment on column occ.iam_identities.keyable is 'Whether a service key may belong to it.';
comment on column occ.iam_identities.created_at is 'Creation.';

create unique index iam_identities_agent_key on occ.iam_identities (namespace_id, agent_id)
  where agent_id is not null;
grant select, insert, delete, update (label) on occ.iam_identities to occ_app;

-- The two halves of one birth: Agent and identity are inserted in one transaction, in either order.
alter table occ.agents add constraint agents_service_principal_fkey
  foreign key (namespace_id, id, service_principal_id) references occ.iam_identities (namespace_id, agent_id, id)
  on update no action on delete no action deferrable initially deferred;

create table occ.iam_groups (
  id text collate "C" not null
    constraint iam_groups_id_format
      check (id ~ '^grp_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  namespace_id text collate "C",
  name text collate "C" not null
    constraint iam_groups_name_rule check (length(name) between 1 and 200 and name = btrim(name)
      and name !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'),
  version bigint not null default 1
    constraint iam_groups_version_positive check (version >= 1),
  created_at timestamptz not null default now(),
  constraint iam_groups_pkey primary key (id),
  constraint iam_groups_name_key unique nulls not distinct (namespace_id, name),
  constraint iam_groups_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.iam_groups is 'Groups of humans.';
comment on column occ.iam_groups.id is 'Group id.';
comment on column occ.iam_groups.namespace_id is 'Scope; absent for the Installation.';
comment on column occ.iam_groups.name is 'Name, unique in its scope.';
comment on column occ.iam_groups.version is 'Grows with each update.';
comment on column occ.iam_groups.created_at is 'Creation.';

grant select, insert, delete, update (name, version) on occ.iam_groups to occ_app;

create table occ.iam_group_members (
  group_id text collate "C" not null,
  principal_id text collate "C" not null,
  created_at timestamptz not null default now(),
  constraint iam_group_members_pkey primary key (group_id, principal_id),
  constraint iam_group_members_group_id_fkey foreign key (group_id) references occ.iam_groups (id)
    on update restrict on delete cascade,
  constraint iam_group_members_principal_id_fkey foreign key (principal_id) references occ.iam_identities (id)
    on update restrict on delete cascade
);

comment on table occ.iam_group_members is 'Which principals are in which group.';
comment on column occ.iam_group_members.group_id is 'The group.';
comment on column occ.iam_group_members.principal_id is 'The principal.';
comment on column occ.iam_group_members.created_at is 'Start of the membership.';

create index iam_group_members_principal_id on occ.iam_group_members (principal_id);
grant select, insert, delete on occ.iam_group_members to occ_app;

create table occ.iam_roles (
  id text collate "C" not null
    constraint iam_roles_id_format
      check (id ~ '^role_[a-z_]*[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  namespace_id text collate "C",
  name text collate "C"
    constraint iam_roles_name_rule check (length(name) between 1 and 200 and name = btrim(name)
      and name !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'),
  version bigint not null default 1
    constraint iam_roles_version_positive check (version >= 1),
  created_at timestamptz not null default now(),
  constraint iam_roles_pkey primary key (id),
  constraint iam_roles_owner_key unique (namespace_id, id),
  constraint iam_roles_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.iam_roles is 'Named sets of permissions.';
comment on column occ.iam_roles.id is 'Role id.';
comment on column occ.iam_roles.namespace_id is 'Scope; absent for the Installation.';
comment on column occ.iam_roles.name is 'Display name.';
comment on column occ.iam_roles.version is 'Grows with each update.';
comment on column occ.iam_roles.created_at is 'Creation.';

create index iam_roles_created_at on occ.iam_roles (namespace_id, created_at, id);
grant select, insert, delete, update (name, version) on occ.iam_roles to occ_app;

create table occ.iam_role_permissions (
  role_id text collate "C" not null,
  action text collate "C" not null
    constraint iam_role_permissions_action_known
      check (action in ('create', 'read', 'update', 'delete', 'deploy', 'operate',
      'administer', 'read_logs', 'use')),
  resource_kind text collate "C" not null
    constraint iam_role_permissions_resource_kind_known
      check (resource_kind in ('installation', 'namespace', 'configuration', 'preset',
      'service_account', 'secret', 'credential_source', 'agent', 'agent_revision')),
  constraint iam_role_permissions_pkey primary key (role_id, action, resource_kind),
  constraint iam_role_permissions_role_id_fkey foreign key (role_id) references occ.iam_roles (id)
    on update restrict on delete cascade
);

comment on table occ.iam_role_permissions is 'The pairs (action, kind) of a role.';
comment on column occ.iam_role_permissions.role_id is 'The role.';
comment on column occ.iam_role_permissions.action is 'What may be done.';
comment on column occ.iam_role_permissions.resource_kind is 'To what kind of resource.';

grant select, insert, delete on occ.iam_role_permissions to occ_app;

create table occ.iam_bindings (
  id text collate "C" not null
    constraint iam_bindings_id_format
      check (id ~ '^binding_[a-z_]*[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  role_id text collate "C" not null,
  identity_id text collate "C",
  group_id text collate "C",
  namespace_id text collate "C",
  resource_kind text collate "C"
    constraint iam_bindings_resource_kind_known
      check (resource_kind in ('installation', 'namespace', 'configuration', 'preset',
      'service_account', 'secret', 'credential_source', 'agent', 'agent_revision')),
  resource_id text collate "C"
    constraint iam_bindings_resource_id_length check (length(resource_id) between 1 and 200),
  created_by text collate "C" not null
    constraint iam_bindings_created_by_length check (length(created_by) between 1 and 200),
  created_at timestamptz not null default now(),
  constraint iam_bindings_pkey primary key (id),
  constraint iam_bindings_one_subject check (num_nonnulls(identity_id, group_id) = 1),
  constraint iam_bindings_target_complete check ((resource_kind is null) = (resource_id is null)),
  constraint iam_bindings_target_scope check (resource_kind is null
    or (resource_kind = 'installation') = (namespace_id is null)),
  constraint iam_bindings_role_id_fkey foreign key (role_id) references occ.iam_roles (id)
    on update restrict on delete restrict,
  constraint iam_bindings_identity_id_fkey foreign key (identity_id) references occ.iam_identities (id)
    on update restrict on delete restrict,
  constraint iam_bindings_group_id_fkey foreign key (group_id) references occ.iam_groups (id)
    on update restrict on delete restrict,
  constraint iam_bindings_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.iam_bindings is 'Grants: a role, a subject and a scope.';
comment on column occ.iam_bindings.id is 'Binding id.';
comment on column occ.iam_bindings.role_id is 'The role.';
comment on column occ.iam_bindings.identity_id is 'Subject: an identity.';
comment on column occ.iam_bindings.group_id is 'Subject: a group.';
comment on column occ.iam_bindings.namespace_id is 'Scope; absent for the Installation.';
comment on column occ.iam_bindings.resource_kind is 'Kind of an exact target.';
comment on column occ.iam_bindings.resource_id is 'Id of an exact target.';
comment on column occ.iam_bindings.created_by is 'Identity that granted it.';
comment on column occ.iam_bindings.created_at is 'Creation.';

create index iam_bindings_identity_id on occ.iam_bindings (identity_id);
create index iam_bindings_group_id on occ.iam_bindings (group_id);
create index iam_bindings_role_id on occ.iam_bindings (role_id);
create index iam_bindings_resource on occ.iam_bindings (resource_kind, resource_id);
create index iam_bindings_created_at on occ.iam_bindings (namespace_id, created_at, id);
grant select, insert, delete on occ.iam_bindings to occ_app;

create table occ.iam_restrictions (
  id text collate "C" not null
    constraint iam_restrictions_id_format
      check (id ~ '^rst_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  namespace_id text collate "C",
  identity_id text collate "C",
  action text collate "C" not null
    constraint iam_restrictions_action_known
      check (action in ('create', 'read', 'update', 'delete', 'deploy', 'operate',
      'administer', 'read_logs', 'use')),
  resource_kind text collate "C" not null
    constraint iam_restrictions_resource_kind_known
      check (resource_kind in ('installation', 'namespace', 'configuration', 'preset',
      'service_account', 'secret', 'credential_source', 'agent', 'agent_revision')),
  resource_id text collate "C"
    constraint iam_restrictions_resource_id_length check (length(resource_id) between 1 and 200),
  created_by text collate "C" not null
    constraint iam_restrictions_created_by_length check (length(created_by) between 1 and 200),
  created_at timestamptz not null default now(),
  constraint iam_restrictions_pkey primary key (id),
  constraint iam_restrictions_no_lockout
    check (not (resource_kind = 'installation' and action in ('administer', 'read'))),
  constraint iam_restrictions_identity_id_fkey foreign key (identity_id) references occ.iam_identities (id)
    on update restrict on delete cascade,
  constraint iam_restrictions_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.iam_restrictions is 'Denials: they win over every grant.';
comment on column occ.iam_restrictions.id is 'Restriction id.';
comment on column occ.iam_restrictions.namespace_id is 'Scope; absent for everywhere.';
comment on column occ.iam_restrictions.identity_id is 'Subject; absent for everybody.';
comment on column occ.iam_restrictions.action is 'What may not be done.';
comment on column occ.iam_restrictions.resource_kind is 'To what kind of resource.';
comment on column occ.iam_restrictions.resource_id is 'To which resource; absent for all of the kind.';
comment on column occ.iam_restrictions.created_by is 'Identity that created it.';
comment on column occ.iam_restrictions.created_at is 'Creation.';

create index iam_restrictions_identity_id on occ.iam_restrictions (identity_id);
create index iam_restrictions_permission on occ.iam_restrictions (resource_kind, action);
create index iam_restrictions_created_at on occ.iam_restrictions (namespace_id, created_at, id);
grant select, insert, delete on occ.iam_restrictions to occ_app;
