-- purpose: the schema, its default privileges, the Installation and the state of its processes
-- compatible-from: 20261201030000
-- phase: expand

create schema if not exists occ;
comment on schema occ is 'The application schema of OpenClaw Enterprise.';
grant usage on schema occ to occ_app;

-- What the migrator makes is invisible to everybody until its migration grants it. Functions and types are
-- open to PUBLIC by a built-in default, which only a default without a schema can take away.
alter default privileges revoke execute on functions from public;
alter default privileges revoke usage on types from public;
alter default privileges revoke all on tables from public;
alter default privileges revoke all on sequences from public;

create table occ.installation (
  id text collate "C" not null
    constraint installation_id_format
      check (id ~ '^ins_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  name text collate "C" not null
    constraint installation_name_rule check (length(name) between 1 and 200 and name = btrim(name)
      and name !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'),
  event_stream uuid not null default gen_random_uuid(),
  bootstrap_attempt_id text collate "C" not null
    constraint installation_bootstrap_attempt_id_format
      check (bootstrap_attempt_id ~ '^bat_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  created_at timestamptz not null default now(),
  constraint installation_pkey primary key (id)
);

comment on table occ.installation is 'The one Installation that this database serves.';
comment on column occ.installation.id is 'Installation id.';
comment on column occ.installation.name is 'Display name, fixed at bootstrap.';
comment on column occ.installation.event_stream is
  'Names the event stream; drawn anew when a restored database breaks its order.';
comment on column occ.installation.bootstrap_attempt_id is 'The bootstrap attempt that created the Installation.';
comment on column occ.installation.created_at is 'Time of the bootstrap transaction.';

create unique index installation_singleton on occ.installation ((true));
grant select, insert, update (event_stream) on occ.installation to occ_app;

create table occ.schema_state (
  singleton boolean not null default true
    constraint schema_state_singleton_true check (singleton),
  version bigint not null
    constraint schema_state_version_positive check (version > 0),
  compatible_from bigint not null
    constraint schema_state_compatible_from_range check (compatible_from between 1 and version),
  product_version text collate "C" not null
    constraint schema_state_product_version_length check (length(product_version) between 1 and 100),
  updated_at timestamptz not null default now(),
  constraint schema_state_pkey primary key (singleton)
);

comment on table occ.schema_state is 'What the migrator left: read by the readiness of every process.';
comment on column occ.schema_state.singleton is 'Always true: the table has one row.';
comment on column occ.schema_state.version is 'Version of the newest applied migration.';
comment on column occ.schema_state.compatible_from is
  'Oldest schema version whose binary still works on this schema.';
comment on column occ.schema_state.product_version is 'Product version of the binary that migrated last.';
comment on column occ.schema_state.updated_at is 'Time of the last successful migration run.';

grant select on occ.schema_state to occ_app;

create table occ.bootstrap_attempts (
  id text collate "C" not null
    constraint bootstrap_attempts_id_format
      check (id ~ '^bat_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  kind text collate "C" not null
    constraint bootstrap_attempts_kind_known check (kind in ('bootstrap', 'reissue')),
  request_id text collate "C"
    constraint bootstrap_attempts_request_id_format check (request_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
  service_key_id text collate "C"
    constraint bootstrap_attempts_service_key_id_format
      check (service_key_id ~ '^key_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  created_at timestamptz not null default now(),
  constraint bootstrap_attempts_pkey primary key (id),
  constraint bootstrap_attempts_request_id_key unique (request_id)
);

comment on table occ.bootstrap_attempts is 'Committed runs of bootstrap and of the reissue of its key; insert only.';
comment on column occ.bootstrap_attempts.id is 'Attempt id, also in the attempt record on disk.';
comment on column occ.bootstrap_attempts.kind is 'bootstrap, or reissue of the first service key.';
comment on column occ.bootstrap_attempts.request_id is 'Request id of a reissue: the same id never issues twice.';
comment on column occ.bootstrap_attempts.service_key_id is
  'The key that the attempt issued; no foreign key, keys end.';
comment on column occ.bootstrap_attempts.created_at is 'Time of the attempt''s transaction.';

grant select, insert on occ.bootstrap_attempts to occ_app;

create table occ.processes (
  id uuid not null,
  role text collate "C" not null
    constraint processes_role_known check (role in ('api', 'worker')),
  version text collate "C" not null
    constraint processes_version_length check (length(version) between 1 and 100),
  pod_name text collate "C"
    constraint processes_pod_name_length check (length(pod_name) between 1 and 253),
  started_at timestamptz not null,
  seen_at timestamptz not null,
  constraint processes_pkey primary key (id)
);

comment on table occ.processes is
  'Running processes; each refreshes its row every 10 s, rows older than 1 h are deleted.';
comment on column occ.processes.id is 'Drawn at process start.';
comment on column occ.processes.role is 'api or worker.';
comment on column occ.processes.version is 'Product version of the process.';
comment on column occ.processes.pod_name is 'Pod of the process, absent outside a cluster.';
comment on column occ.processes.started_at is 'Process start.';
comment on column occ.processes.seen_at is 'Last refresh.';

create index processes_seen_at on occ.processes (seen_at);
grant select, insert, delete, update (role, version, pod_name, started_at, seen_at) on occ.processes to occ_app;

create table occ.plugin_observations (
  process_id uuid not null,
  plugin_id text collate "C" not null
    constraint plugin_observations_plugin_id_length check (length(plugin_id) between 1 and 200),
  kind text collate "C" not null
    constraint plugin_observations_kind_known check (kind in ('compute', 'harness', 'backend', 'repo')),
  version text collate "C" not null
    constraint plugin_observations_version_length check (length(version) between 1 and 100),
  contract text collate "C" not null
    constraint plugin_observations_contract_length check (length(contract) between 1 and 100),
  digest text collate "C" not null
    constraint plugin_observations_digest_format check (digest ~ '^sha256:[0-9a-f]{64}$'),
  bundle text collate "C" not null
    constraint plugin_observations_bundle_length check (length(bundle) between 1 and 500),
  signature text collate "C" not null
    constraint plugin_observations_signature_known check (signature in ('valid', 'absent', 'untrusted')),
  state text collate "C" not null
    constraint plugin_observations_state_known check (state in ('loaded', 'failed', 'retired')),
  breaker text collate "C" not null
    constraint plugin_observations_breaker_known check (breaker in ('closed', 'open', 'half_open')),
  code text collate "C"
    constraint plugin_observations_code_format check (code ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  calls bigint not null default 0
    constraint plugin_observations_calls_range check (calls >= 0),
  failures bigint not null default 0
    constraint plugin_observations_failures_range check (failures >= 0),
  last_error_code text collate "C"
    constraint plugin_observations_last_error_code_format check (last_error_code ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  last_error_at timestamptz,
  observed_at timestamptz not null,
  constraint plugin_observations_pkey primary key (process_id, plugin_id, digest),
  constraint plugin_observations_process_id_fkey foreign key (process_id) references occ.processes (id)
    on update restrict on delete cascade
);

comment on table occ.plugin_observations is 'What each process knows of each plugin; no message text, no settings.';
comment on column occ.plugin_observations.process_id is 'The observing process.';
comment on column occ.plugin_observations.plugin_id is 'Plugin id from its manifest.';
comment on column occ.plugin_observations.kind is 'Plugin kind.';
comment on column occ.plugin_observations.version is 'Plugin version.';
comment on column occ.plugin_observations.contract is 'WIT contract version the component was built against.';
comment on column occ.plugin_observations.digest is 'Digest of the component.';
comment on column occ.plugin_observations.bundle is 'Name of the bundle that carries it.';
comment on column occ.plugin_observations.signature is 'Verdict of the trust policy.';
comment on column occ.plugin_observations.state is 'Whether the process can call it.';
comment on column occ.plugin_observations.breaker is 'State of the circuit breaker.';
comment on column occ.plugin_observations.code is 'Why it failed to load.';
comment on column occ.plugin_observations.calls is 'Calls since process start.';
comment on column occ.plugin_observations.failures is 'Failed calls since process start.';
comment on column occ.plugin_observations.last_error_code is 'Code of the last failed call.';
comment on column occ.plugin_observations.last_error_at is 'Time of the last failed call.';
comment on column occ.plugin_observations.observed_at is 'Time of this observation.';

grant select, insert, delete,
  update (kind, version, contract, bundle, signature, state, breaker, code, calls, failures, last_error_code,
          last_error_at, observed_at)
  on occ.plugin_observations to occ_app;

create table occ.reconciler_runs (
  name text collate "C" not null
    constraint reconciler_runs_name_format check (name ~ '^[a-z][a-z_]{0,62}$'),
  started_at timestamptz not null,
  finished_at timestamptz,
  outcome text collate "C"
    constraint reconciler_runs_outcome_known check (outcome in ('ok', 'partial', 'failed')),
  code text collate "C"
    constraint reconciler_runs_code_format check (code ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  processed bigint not null default 0
    constraint reconciler_runs_processed_range check (processed >= 0),
  constraint reconciler_runs_pkey primary key (name),
  constraint reconciler_runs_finish_complete check ((finished_at is null) = (outcome is null))
);

comment on table occ.reconciler_runs is 'Last result of each reconciler.';
comment on column occ.reconciler_runs.name is 'Reconciler name.';
comment on column occ.reconciler_runs.started_at is 'Start of the last run.';
comment on column occ.reconciler_runs.finished_at is 'End of the last run, absent while it runs.';
comment on column occ.reconciler_runs.outcome is 'Result of the last finished run.';
comment on column occ.reconciler_runs.code is 'Why the run was partial or failed.';
comment on column occ.reconciler_runs.processed is 'Rows or objects the run handled.';

grant select, insert, delete, update (started_at, finished_at, outcome, code, processed)
  on occ.reconciler_runs to occ_app;
