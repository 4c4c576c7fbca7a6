-- purpose: Namespaces and what a tenant keeps in them
-- compatible-from: 20261201030100
-- phase: expand

create table occ.namespaces (
  id text collate "C" not null
    constraint namespaces_id_format
      check (id ~ '^ns_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  name text collate "C" not null
    constraint namespaces_name_rule check (length(name) between 1 and 200 and name = btrim(name)
      and name !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'),
  existing_namespace text collate "C"
    constraint namespaces_existing_namespace_format
      check (existing_namespace ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  status text collate "C" not null default 'provisioning'
    constraint namespaces_status_known check (status in ('provisioning', 'ready', 'failed', 'deleting')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  constraint namespaces_pkey primary key (id),
  constraint namespaces_name_key unique (name),
  constraint namespaces_tombstone_rule
    check (deleted_at is null or (status = 'deleting' and deleted_at >= created_at))
);

comment on table occ.namespaces is
  'Tenants. A deleted Namespace stays as a tombstone, so its name and id never return.';
comment on column occ.namespaces.id is 'Namespace id.';
comment on column occ.namespaces.name is 'Unique name, tombstones included.';
comment on column occ.namespaces.existing_namespace is 'Kubernetes namespace the tenant was adopted into.';
comment on column occ.namespaces.status is 'Lifecycle state.';
comment on column occ.namespaces.created_at is 'Creation.';
comment on column occ.namespaces.updated_at is 'Last change.';
comment on column occ.namespaces.deleted_at is 'Set once, when the deletion has finished.';

create unique index namespaces_existing_namespace_key on occ.namespaces (existing_namespace)
  where existing_namespace is not null and deleted_at is null;
create index namespaces_created_at on occ.namespaces (created_at, id);
grant select, insert, update (status, updated_at, deleted_at) on occ.namespaces to occ_app;

create table occ.configurations (
  id text collate "C" not null
    constraint configurations_id_format
      check (id ~ '^cfg_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  namespace_id text collate "C" not null,
  kind text collate "C" not null default 'agent'
    constraint configurations_kind_known check (kind = 'agent'),
  generation bigint not null default 1
    constraint configurations_generation_range check (generation between 1 and 9007199254740991),
  document jsonb not null
    constraint configurations_document_object check (jsonb_typeof(document) = 'object')
    constraint configurations_document_size check (octet_length(document::text) <= 4194304),
  created_by text collate "C" not null
    constraint configurations_created_by_length check (length(created_by) between 1 and 200),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint configurations_pkey primary key (id),
  constraint configurations_owner_key unique (namespace_id, id),
  constraint configurations_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.configurations is 'Native OpenClaw configurations, the drafts that a deployment freezes.';
comment on column occ.configurations.id is 'Configuration id.';
comment on column occ.configurations.namespace_id is 'Owner.';
comment on column occ.configurations.kind is 'What the document configures.';
comment on column occ.configurations.generation is 'Grows by one with each update.';
comment on column occ.configurations.document is 'The document as it was sent.';
comment on column occ.configurations.created_by is 'Identity that created it.';
comment on column occ.configurations.created_at is 'Creation.';
comment on column occ.configurations.updated_at is 'Last change.';

create index configurations_created_at on occ.configurations (namespace_id, created_at, id);
grant select, insert, delete, update (generation, document, updated_at) on occ.configurations to occ_app;

create table occ.secrets (
  id text collate "C" not null
    constraint secrets_id_format
      check (id ~ '^sec_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  namespace_id text collate "C" not null,
  name text collate "C" not null
    constraint secrets_name_rule check (length(name) between 1 and 200 and name = btrim(name)
      and name !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'),
  store text collate "C" not null
    constraint secrets_store_known check (store in ('kubernetes', 'database')),
  state text collate "C" not null default 'writing'
    constraint secrets_state_known check (state in ('writing', 'ready', 'deleting')),
  version bigint not null default 1
    constraint secrets_version_positive check (version >= 1),
  backend_namespace text collate "C"
    constraint secrets_backend_namespace_format
      check (backend_namespace ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  backend_name text collate "C"
    constraint secrets_backend_name_format check (length(backend_name) <= 253
      and backend_name ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$'),
  backend_key text collate "C"
    constraint secrets_backend_key_format check (backend_key ~ '^[-._a-zA-Z0-9]{1,253}$'),
  backend_uid text collate "C"
    constraint secrets_backend_uid_format
      check (backend_uid ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
  created_by text collate "C" not null
    constraint secrets_created_by_length check (length(created_by) between 1 and 200),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint secrets_pkey primary key (id),
  constraint secrets_owner_key unique (namespace_id, id),
  constraint secrets_name_key unique (namespace_id, name),
  constraint secrets_backend_complete check (case store
    when 'database' then num_nonnulls(backend_namespace, backend_name, backend_key, backend_uid) = 0
    else state <> 'ready' or num_nonnulls(backend_namespace, backend_name, backend_key, backend_uid) = 4 end),
  constraint secrets_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.secrets is 'Secrets of a tenant: name, place and version, never the value.';
comment on column occ.secrets.id is 'Secret id.';
comment on column occ.secrets.namespace_id is 'Owner.';
comment on column occ.secrets.name is 'Name, unique in the Namespace.';
comment on column occ.secrets.store is 'Where the value lives.';
comment on column occ.secrets.state is 'Only ready secrets are visible and bindable.';
comment on column occ.secrets.version is 'Grows by one with each new value.';
comment on column occ.secrets.backend_namespace is 'Kubernetes namespace of the value.';
comment on column occ.secrets.backend_name is 'Kubernetes Secret of the value.';
comment on column occ.secrets.backend_key is 'Key in the Kubernetes Secret.';
comment on column occ.secrets.backend_uid is 'Uid of the Kubernetes Secret.';
comment on column occ.secrets.created_by is 'Identity that created it.';
comment on column occ.secrets.created_at is 'Creation.';
comment on column occ.secrets.updated_at is 'Last change.';

create index secrets_created_at on occ.secrets (namespace_id, created_at, id);
grant select, insert, delete,
  update (state, version, backend_namespace, backend_name, backend_key, backend_uid, updated_at)
  on occ.secrets to occ_app;

create table occ.secret_values (
  secret_id text collate "C" not null
    constraint secret_values_secret_id_format
      check (secret_id ~ '^sec_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  version bigint not null
    constraint secret_values_version_positive check (version >= 1),
  key_id text collate "C" not null
    constraint secret_values_key_id_length check (length(key_id) between 1 and 200),
  wrapped_key bytea not null
    constraint secret_values_wrapped_key_length check (octet_length(wrapped_key) = 48),
  key_nonce bytea not null
    constraint secret_values_key_nonce_length check (octet_length(key_nonce) = 12),
  nonce bytea not null
    constraint secret_values_nonce_length check (octet_length(nonce) = 12),
  ciphertext bytea not null
    constraint secret_values_ciphertext_length check (octet_length(ciphertext) between 17 and 65552),
  constraint secret_values_pkey primary key (secret_id),
  constraint secret_values_secret_id_fkey foreign key (secret_id) references occ.secrets (id)
    on update restrict on delete cascade
);

comment on table occ.secret_values is
  'Envelope-encrypted values of the database store (AES-256-GCM, one data key per value and version).';
comment on column occ.secret_values.secret_id is 'The secret.';
comment on column occ.secret_values.version is 'Version of the value; part of the associated data.';
comment on column occ.secret_values.key_id is 'Key-encryption key that wraps the data key.';
comment on column occ.secret_values.wrapped_key is 'The wrapped data key, 48 bytes.';
comment on column occ.secret_values.key_nonce is 'Nonce of the wrapping, 12 bytes.';
comment on column occ.secret_values.nonce is 'Nonce of the value, 12 bytes.';
comment on column occ.secret_values.ciphertext is 'The sealed value with its tag.';

grant select, insert, delete, update (version, key_id, wrapped_key, key_nonce, nonce, ciphertext)
  on occ.secret_values to occ_app;

create table occ.configuration_secret_bindings (
  namespace_id text collate "C" not null,
  configuration_id text collate "C" not null,
  env_name text collate "C" not null
    constraint configuration_secret_bindings_env_name_format check (env_name ~ '^[A-Za-z_][A-Za-z0-9_]{0,252}$'),
  secret_id text collate "C" not null,
  constraint configuration_secret_bindings_pkey primary key (configuration_id, env_name),
  constraint configuration_secret_bindings_configuration_fkey foreign key (namespace_id, configuration_id)
    references occ.configurations (namespace_id, id) on update restrict on delete cascade,
  constraint configuration_secret_bindings_secret_fkey foreign key (namespace_id, secret_id)
    references occ.secrets (namespace_id, id) on update restrict on delete restrict,
  constraint configuration_secret_bindings_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.configuration_secret_bindings is
  'Environment variables of a configuration that take their value from a secret.';
comment on column occ.configuration_secret_bindings.namespace_id is 'Owner of both sides.';
comment on column occ.configuration_secret_bindings.configuration_id is 'The configuration.';
comment on column occ.configuration_secret_bindings.env_name is 'Environment variable.';
comment on column occ.configuration_secret_bindings.secret_id is 'The secret.';

create index configuration_secret_bindings_configuration
  on occ.configuration_secret_bindings (namespace_id, configuration_id);
create index configuration_secret_bindings_secret on occ.configuration_secret_bindings (namespace_id, secret_id);
grant select, insert, delete on occ.configuration_secret_bindings to occ_app;

create table occ.agents (
  id text collate "C" not null
    constraint agents_id_format
      check (id ~ '^agt_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  namespace_id text collate "C" not null,
  name text collate "C" not null
    constraint agents_name_rule check (length(name) between 1 and 200 and name = btrim(name)
      and name !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'),
  configuration_id text collate "C" not null,
  backend_id text collate "C"
    constraint agents_backend_id_length check (length(backend_id) between 1 and 200),
  execution_mode text collate "C" not null default 'embedded'
    constraint agents_execution_mode_known check (execution_mode in ('embedded', 'dedicated')),
  harness_method text collate "C"
    constraint agents_harness_method_known check (harness_method in ('runtime', 'api_key', 'codex_pat', 'oauth')),
  harness_secret_id text collate "C",
  plugins jsonb
    constraint agents_plugins_size check (octet_length(plugins::text) <= 262144),
  plugin_approvers jsonb
    constraint agents_plugin_approvers_size check (octet_length(plugin_approvers::text) <= 262144),
  repository_bindings jsonb
    constraint agents_repository_bindings_size check (octet_length(repository_bindings::text) <= 262144),
  rollback_policy text collate "C" not null default 'automatic'
    constraint agents_rollback_policy_known check (rollback_policy in ('automatic', 'manual')),
  service_principal_id text collate "C" not null
    constraint agents_service_principal_id_format
      check (service_principal_id ~ '^spn_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  desired_runtime_state text collate "C" not null default 'stopped'
    constraint agents_desired_runtime_state_known check (desired_runtime_state in ('running', 'stopped')),
  status text collate "C" not null default 'active'
    constraint agents_status_known check (status in ('active', 'deleting')),
  active_revision_id text collate "C",
  last_revision_number bigint not null default 0
    constraint agents_last_revision_number_range check (last_revision_number >= 0),
  version bigint not null default 1
    constraint agents_version_positive check (version >= 1),
  created_by text collate "C" not null
    constraint agents_created_by_length check (length(created_by) between 1 and 200),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint agents_pkey primary key (id),
  constraint agents_owner_key unique (namespace_id, id),
  constraint agents_name_key unique (namespace_id, name),
  constraint agents_service_principal_key unique (namespace_id, id, service_principal_id),
  constraint agents_deleting_stopped check (status <> 'deleting' or desired_runtime_state = 'stopped'),
  constraint agents_harness_secret_complete
    check ((harness_secret_id is not null) = (harness_method is not null and harness_method <> 'runtime')),
  constraint agents_configuration_fkey foreign key (namespace_id, configuration_id)
    references occ.configurations (namespace_id, id) on update restrict on delete restrict,
  constraint agents_harness_secret_fkey foreign key (namespace_id, harness_secret_id)
    references occ.secrets (namespace_id, id) on update restrict on delete restrict,
  constraint agents_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.agents is 'Agents: what should run, and the revision the worker committed to run.';
comment on column occ.agents.id is 'Agent id.';
comment on column occ.agents.namespace_id is 'Owner.';
comment on column occ.agents.name is 'Name, unique in the Namespace.';
comment on column occ.agents.configuration_id is 'Configuration that the next deployment freezes.';
comment on column occ.agents.backend_id is 'Backend that the next deployment uses, absent for the default.';
comment on column occ.agents.execution_mode is 'Whether gateway and agent share a process.';
comment on column occ.agents.harness_method is 'How the harness signs in to its model.';
comment on column occ.agents.harness_secret_id is 'Secret of the harness method, for every method but runtime.';
comment on column occ.agents.plugins is 'Runtime plugins of the Agent.';
comment on column occ.agents.plugin_approvers is 'Who may approve runtime plugins.';
comment on column occ.agents.repository_bindings is 'Repositories the Agent may reach.';
comment on column occ.agents.rollback_policy is 'Whether a failed activation restores the predecessor.';
comment on column occ.agents.service_principal_id is 'The Agent''s own identity.';
comment on column occ.agents.desired_runtime_state is 'Last intent of the caller.';
comment on column occ.agents.status is 'Deleting is final.';
comment on column occ.agents.active_revision_id is 'The revision the worker committed to run.';
comment on column occ.agents.last_revision_number is 'Number of the newest admitted revision.';
comment on column occ.agents.version is 'Grows with each update by a caller.';
comment on column occ.agents.created_by is 'Identity that created it.';
comment on column occ.agents.created_at is 'Creation.';
comment on column occ.agents.updated_at is 'Last change.';

create index agents_created_at on occ.agents (namespace_id, created_at, id);
create index agents_configuration on occ.agents (namespace_id, configuration_id);
create index agents_harness_secret on occ.agents (namespace_id, harness_secret_id);
create index agents_active_revision on occ.agents (namespace_id, id, active_revision_id);
grant select, insert,
  update (configuration_id, backend_id, execution_mode, harness_method, harness_secret_id, plugins,
          plugin_approvers, repository_bindings, rollback_policy, desired_runtime_state, status,
          active_revision_id, last_revision_number, version, updated_at)
  on occ.agents to occ_app;

create table occ.agent_credentials (
  namespace_id text collate "C" not null,
  agent_id text collate "C" not null,
  name text collate "C" not null
    constraint agent_credentials_name_format check (name ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  store text collate "C" not null
    constraint agent_credentials_store_known check (store in ('kubernetes', 'database')),
  state text collate "C" not null default 'writing'
    constraint agent_credentials_state_known check (state in ('writing', 'ready', 'deleting')),
  backend_namespace text collate "C"
    constraint agent_credentials_backend_namespace_format
      check (backend_namespace ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  backend_name text collate "C"
    constraint agent_credentials_backend_name_format check (length(backend_name) <= 253
      and backend_name ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$'),
  backend_key text collate "C"
    constraint agent_credentials_backend_key_format check (backend_key ~ '^[-._a-zA-Z0-9]{1,253}$'),
  backend_uid text collate "C"
    constraint agent_credentials_backend_uid_format
      check (backend_uid ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
  key_id text collate "C"
    constraint agent_credentials_key_id_length check (length(key_id) between 1 and 200),
  wrapped_key bytea
    constraint agent_credentials_wrapped_key_length check (octet_length(wrapped_key) = 48),
  key_nonce bytea
    constraint agent_credentials_key_nonce_length check (octet_length(key_nonce) = 12),
  nonce bytea
    constraint agent_credentials_nonce_length check (octet_length(nonce) = 12),
  ciphertext bytea
    constraint agent_credentials_ciphertext_length check (octet_length(ciphertext) between 17 and 65552),
  constraint agent_credentials_pkey primary key (agent_id, name),
  constraint agent_credentials_backend_complete check (case store
    when 'database' then num_nonnulls(backend_namespace, backend_name, backend_key, backend_uid) = 0
    else state <> 'ready' or num_nonnulls(backend_namespace, backend_name, backend_key, backend_uid) = 4 end),
  constraint agent_credentials_envelope_complete check (case store
    when 'kubernetes' then num_nonnulls(key_id, wrapped_key, key_nonce, nonce, ciphertext) = 0
    else num_nonnulls(key_id, wrapped_key, key_nonce, nonce, ciphertext) = 5
      or (state <> 'ready' and num_nonnulls(key_id, wrapped_key, key_nonce, nonce, ciphertext) = 0) end),
  constraint agent_credentials_agent_fkey foreign key (namespace_id, agent_id)
    references occ.agents (namespace_id, id) on update restrict on delete restrict,
  constraint agent_credentials_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.agent_credentials is 'Generated credentials of an Agent, kept until its runtime is destroyed.';
comment on column occ.agent_credentials.namespace_id is 'Owner.';
comment on column occ.agent_credentials.agent_id is 'The Agent.';
comment on column occ.agent_credentials.name is 'Which credential, such as gateway-password.';
comment on column occ.agent_credentials.store is 'Where the value lives.';
comment on column occ.agent_credentials.state is 'Only ready credentials are used.';
comment on column occ.agent_credentials.backend_namespace is 'Kubernetes namespace of the value.';
comment on column occ.agent_credentials.backend_name is 'Kubernetes Secret of the value.';
comment on column occ.agent_credentials.backend_key is 'Key in the Kubernetes Secret.';
comment on column occ.agent_credentials.backend_uid is 'Uid of the Kubernetes Secret.';
comment on column occ.agent_credentials.key_id is 'Key-encryption key that wraps the data key.';
comment on column occ.agent_credentials.wrapped_key is 'The wrapped data key, 48 bytes.';
comment on column occ.agent_credentials.key_nonce is 'Nonce of the wrapping, 12 bytes.';
comment on column occ.agent_credentials.nonce is 'Nonce of the value, 12 bytes.';
comment on column occ.agent_credentials.ciphertext is 'The sealed value with its tag.';

create index agent_credentials_agent on occ.agent_credentials (namespace_id, agent_id);
grant select, insert, delete,
  update (state, backend_namespace, backend_name, backend_key, backend_uid, key_id, wrapped_key, key_nonce, nonce,
          ciphertext)
  on occ.agent_credentials to occ_app;

create table occ.agent_revisions (
  id text collate "C" not null
    constraint agent_revisions_id_format
      check (id ~ '^rev_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  namespace_id text collate "C" not null,
  agent_id text collate "C" not null,
  revision_number bigint not null
    constraint agent_revisions_revision_number_positive check (revision_number > 0),
  backend_id text collate "C"
    constraint agent_revisions_backend_id_length check (length(backend_id) between 1 and 200),
  configuration_id text collate "C" not null
    constraint agent_revisions_configuration_id_format
      check (configuration_id ~ '^cfg_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  configuration_generation bigint not null
    constraint agent_revisions_configuration_generation_range
      check (configuration_generation between 1 and 9007199254740991),
  compute_plugin text collate "C" not null
    constraint agent_revisions_compute_plugin_length check (length(compute_plugin) between 1 and 200),
  compute_version text collate "C" not null
    constraint agent_revisions_compute_version_length check (length(compute_version) between 1 and 100),
  compute_digest text collate "C" not null
    constraint agent_revisions_compute_digest_format check (compute_digest ~ '^sha256:[0-9a-f]{64}$'),
  harness_id text collate "C" not null
    constraint agent_revisions_harness_id_length check (length(harness_id) between 1 and 200),
  harness_version text collate "C" not null
    constraint agent_revisions_harness_version_length check (length(harness_version) between 1 and 100),
  harness_mode text collate "C" not null
    constraint agent_revisions_harness_mode_known check (harness_mode in ('embedded', 'dedicated')),
  secret_store text collate "C" not null
    constraint agent_revisions_secret_store_known check (secret_store in ('kubernetes', 'database')),
  rollback_of text collate "C",
  snapshot jsonb not null
    constraint agent_revisions_snapshot_object check (jsonb_typeof(snapshot) = 'object')
    constraint agent_revisions_snapshot_size check (octet_length(snapshot::text) <= 8388608),
  created_by text collate "C" not null
    constraint agent_revisions_created_by_length check (length(created_by) between 1 and 200),
  created_at timestamptz not null default now(),
  constraint agent_revisions_pkey primary key (id),
  constraint agent_revisions_owner_key unique (namespace_id, agent_id, id),
  constraint agent_revisions_number_key unique (namespace_id, agent_id, revision_number),
  constraint agent_revisions_agent_fkey foreign key (namespace_id, agent_id)
    references occ.agents (namespace_id, id) on update restrict on delete restrict,
  constraint agent_revisions_rollback_of_fkey foreign key (namespace_id, agent_id, rollback_of)
    references occ.agent_revisions (namespace_id, agent_id, id) on update restrict on delete restrict,
  constraint agent_revisions_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.agent_revisions is
  'Frozen deployments. A row never changes; it outlives the configuration and secrets it names.';
comment on column occ.agent_revisions.id is 'Revision id, also the deployment id.';
comment on column occ.agent_revisions.namespace_id is 'Owner.';
comment on column occ.agent_revisions.agent_id is 'The Agent.';
comment on column occ.agent_revisions.revision_number is 'Counts up per Agent.';
comment on column occ.agent_revisions.backend_id is 'Backend at the freeze.';
comment on column occ.agent_revisions.configuration_id is 'Configuration that was frozen.';
comment on column occ.agent_revisions.configuration_generation is 'Its generation.';
comment on column occ.agent_revisions.compute_plugin is 'Compute plugin that planned it.';
comment on column occ.agent_revisions.compute_version is 'Its version.';
comment on column occ.agent_revisions.compute_digest is 'Its digest.';
comment on column occ.agent_revisions.harness_id is 'Harness that resolved it.';
comment on column occ.agent_revisions.harness_version is 'Its version.';
comment on column occ.agent_revisions.harness_mode is 'Execution mode at the freeze.';
comment on column occ.agent_revisions.secret_store is 'Store that holds its secrets.';
comment on column occ.agent_revisions.rollback_of is 'Revision whose snapshot a manual rollback repeats.';
comment on column occ.agent_revisions.snapshot is
  'Everything the revision froze: configuration, bindings, authentication, workload plan, facts.';
comment on column occ.agent_revisions.created_by is 'Identity that deployed it.';
comment on column occ.agent_revisions.created_at is 'Time of the freeze.';

create index agent_revisions_rollback_of on occ.agent_revisions (namespace_id, agent_id, rollback_of);
grant select, insert on occ.agent_revisions to occ_app;

alter table occ.agents add constraint agents_active_revision_fkey
  foreign key (namespace_id, id, active_revision_id) references occ.agent_revisions (namespace_id, agent_id, id)
  on update restrict on delete restrict;

create table occ.agent_observations (
  namespace_id text collate "C" not null,
  agent_id text collate "C" not null,
  revision_id text collate "C",
  ready boolean,
  code text collate "C"
    constraint agent_observations_code_format check (code ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  detail jsonb
    constraint agent_observations_detail_size check (octet_length(detail::text) <= 65536),
  observed_at timestamptz not null,
  constraint agent_observations_pkey primary key (agent_id),
  constraint agent_observations_agent_fkey foreign key (namespace_id, agent_id)
    references occ.agents (namespace_id, id) on update restrict on delete cascade,
  constraint agent_observations_revision_fkey foreign key (namespace_id, agent_id, revision_id)
    references occ.agent_revisions (namespace_id, agent_id, id) on update restrict on delete cascade,
  constraint agent_observations_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.agent_observations is
  'Last look of the drift reconciler at an Agent, never a deployment''s verdict.';
comment on column occ.agent_observations.namespace_id is 'Owner.';
comment on column occ.agent_observations.agent_id is 'The Agent.';
comment on column occ.agent_observations.revision_id is 'Revision that was looked at.';
comment on column occ.agent_observations.ready is 'Whether it served.';
comment on column occ.agent_observations.code is 'What was found.';
comment on column occ.agent_observations.detail is 'Details of the finding.';
comment on column occ.agent_observations.observed_at is 'Time of the look.';

create index agent_observations_revision on occ.agent_observations (namespace_id, agent_id, revision_id);
grant select, insert, delete, update (namespace_id, revision_id, ready, code, detail, observed_at)
  on occ.agent_observations to occ_app;
