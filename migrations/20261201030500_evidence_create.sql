-- purpose: idempotency keys, audit events and the event stream
-- compatible-from: 20261201030500
-- phase: expand

create table occ.idempotency_keys (
  principal_id text collate "C" not null
    constraint idempotency_keys_principal_id_length check (length(principal_id) between 1 and 200),
  scope text collate "C" not null
    constraint idempotency_keys_scope_length check (length(scope) between 1 and 1024),
  key text collate "C" not null
    constraint idempotency_keys_key_format check (key ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
  request_hash bytea not null
    constraint idempotency_keys_request_hash_length check (octet_length(request_hash) = 32),
  reservation uuid not null,
  state text collate "C" not null
    constraint idempotency_keys_state_known check (state in ('running', 'completed')),
  locked_until timestamptz not null,
  status smallint
    constraint idempotency_keys_status_range check (status between 200 and 599),
  etag text collate "C"
    constraint idempotency_keys_etag_length check (length(etag) between 1 and 200),
  data jsonb
    constraint idempotency_keys_data_size check (octet_length(data::text) <= 8388608),
  resource_id text collate "C"
    constraint idempotency_keys_resource_id_length check (length(resource_id) between 1 and 200),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint idempotency_keys_pkey primary key (principal_id, scope, key),
  constraint idempotency_keys_completed_status check ((state = 'completed') = (status is not null)),
  constraint idempotency_keys_lifetime_range
    check (expires_at > created_at and expires_at <= created_at + interval '24 hours')
);

comment on table occ.idempotency_keys is 'Requests that may be repeated, and the answer that a repetition gets.';
comment on column occ.idempotency_keys.principal_id is 'Caller.';
comment on column occ.idempotency_keys.scope is 'Operation and path parameters.';
comment on column occ.idempotency_keys.key is 'Key that the caller chose.';
comment on column occ.idempotency_keys.request_hash is 'HMAC-SHA-256 of the canonical body.';
comment on column occ.idempotency_keys.reservation is 'Drawn by the request that runs.';
comment on column occ.idempotency_keys.state is 'running or completed.';
comment on column occ.idempotency_keys.locked_until is 'End of the running request''s hold.';
comment on column occ.idempotency_keys.status is 'HTTP status of the answer.';
comment on column occ.idempotency_keys.etag is 'ETag of the answer.';
comment on column occ.idempotency_keys.data is 'Body of the answer, never with a credential.';
comment on column occ.idempotency_keys.resource_id is 'Resource that the request made or changed.';
comment on column occ.idempotency_keys.created_at is 'First request.';
comment on column occ.idempotency_keys.expires_at is '24 h after the first request.';

create index idempotency_keys_expires_at on occ.idempotency_keys (expires_at);
grant select, insert, delete,
  update (request_hash, reservation, state, locked_until, status, etag, data, resource_id, created_at, expires_at)
  on occ.idempotency_keys to occ_app;

create table occ.audit_events (
  id text collate "C" not null
    constraint audit_events_id_format
      check (id ~ '^aud_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  seq bigint generated always as identity,
  occurred_at timestamptz not null default now(),
  kind text collate "C" not null
    constraint audit_events_kind_known
      check (kind in ('bootstrap', 'mutation', 'authorization_denial', 'access', 'reconcile')),
  actor_id text collate "C" not null
    constraint audit_events_actor_id_length check (length(actor_id) between 1 and 200),
  action text collate "C" not null
    constraint audit_events_action_format check (action ~ '^[a-z][a-z0-9._-]{0,127}$'),
  namespace_id text collate "C"
    constraint audit_events_namespace_id_length check (length(namespace_id) between 1 and 200),
  resource_kind text collate "C" not null
    constraint audit_events_resource_kind_length check (length(resource_kind) between 1 and 100),
  resource_id text collate "C" not null
    constraint audit_events_resource_id_length check (length(resource_id) between 1 and 200),
  outcome text collate "C" not null
    constraint audit_events_outcome_known check (outcome in ('success', 'denied', 'failure')),
  request_id text collate "C"
    constraint audit_events_request_id_length check (length(request_id) between 1 and 200),
  actor jsonb not null
    constraint audit_events_actor_object check (jsonb_typeof(actor) = 'object'),
  decision jsonb
    constraint audit_events_decision_object check (jsonb_typeof(decision) = 'object'),
  reason_code text collate "C"
    constraint audit_events_reason_code_format check (reason_code ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  work_key text collate "C"
    constraint audit_events_work_key_length check (length(work_key) between 1 and 512),
  details jsonb
    constraint audit_events_details_object check (jsonb_typeof(details) = 'object'),
  constraint audit_events_pkey primary key (id),
  constraint audit_events_seq_key unique (seq),
  constraint audit_events_row_size check (octet_length(actor::text) + coalesce(octet_length(decision::text), 0)
    + coalesce(octet_length(details::text), 0) + octet_length(actor_id) + octet_length(action)
    + octet_length(resource_kind) + octet_length(resource_id) + coalesce(octet_length(work_key), 0) <= 7936)
);

comment on table occ.audit_events is 'Who did what, append only. No foreign keys on purpose: it outlives everything.';
comment on column occ.audit_events.id is 'Event id.';
comment on column occ.audit_events.seq is 'Order of insertion.';
comment on column occ.audit_events.occurred_at is 'Time of the change.';
comment on column occ.audit_events.kind is 'What sort of event.';
comment on column occ.audit_events.actor_id is 'Identity, system, maintenance:occ_app or unresolved.';
comment on column occ.audit_events.action is 'Action, such as openclaw.agents.deploy.';
comment on column occ.audit_events.namespace_id is 'Namespace of the resource.';
comment on column occ.audit_events.resource_kind is 'Kind of the resource.';
comment on column occ.audit_events.resource_id is 'Id of the resource.';
comment on column occ.audit_events.outcome is 'success, denied or failure.';
comment on column occ.audit_events.request_id is 'Request that caused it.';
comment on column occ.audit_events.actor is 'How the actor was authenticated.';
comment on column occ.audit_events.decision is 'Authorization, reason and evidence.';
comment on column occ.audit_events.reason_code is 'Code of the result.';
comment on column occ.audit_events.work_key is 'Work that it belongs to.';
comment on column occ.audit_events.details is 'Typed details of the action.';

create index audit_events_occurred_at on occ.audit_events (occurred_at desc, id desc);
create index audit_events_namespace_id on occ.audit_events (namespace_id, occurred_at desc, id desc);
create index audit_events_resource on occ.audit_events (resource_kind, resource_id, occurred_at desc);
create index audit_events_work_key on occ.audit_events (work_key, occurred_at desc) where work_key is not null;
grant select,
  insert (id, occurred_at, kind, actor_id, action, namespace_id, resource_kind, resource_id, outcome, request_id,
          actor, decision, reason_code, work_key, details)
  on occ.audit_events to occ_app;

create table occ.events (
  seq bigint generated always as identity,
  tx xid8 not null default pg_current_xact_id(),
  occurred_at timestamptz not null default now(),
  namespace_id text collate "C"
    constraint events_namespace_id_length check (length(namespace_id) between 1 and 200),
  kind text collate "C" not null
    constraint events_kind_format check (kind ~ '^[a-z][a-z0-9._-]{0,127}$'),
  resource_kind text collate "C" not null
    constraint events_resource_kind_length check (length(resource_kind) between 1 and 100),
  resource_id text collate "C" not null
    constraint events_resource_id_length check (length(resource_id) between 1 and 200),
  resource_version text collate "C"
    constraint events_resource_version_length check (length(resource_version) between 1 and 200),
  data jsonb
    constraint events_data_object check (jsonb_typeof(data) = 'object')
    constraint events_data_size check (octet_length(data::text) <= 4096),
  constraint events_pkey primary key (seq)
);

comment on table occ.events is
  'Changes for clients that follow; ids and states only. Read in commit order by (tx, seq).';
comment on column occ.events.seq is 'Order of insertion.';
comment on column occ.events.tx is 'Transaction that wrote it; readers stop below the oldest open one.';
comment on column occ.events.occurred_at is 'Time of the change.';
comment on column occ.events.namespace_id is 'Namespace of the resource.';
comment on column occ.events.kind is 'Type of the event, such as agent.updated.';
comment on column occ.events.resource_kind is 'Kind of the resource.';
comment on column occ.events.resource_id is 'Id of the resource.';
comment on column occ.events.resource_version is 'Version of the resource after the change.';
comment on column occ.events.data is 'Ids and states.';

create index events_tx on occ.events (tx, seq);
create index events_occurred_at on occ.events (occurred_at);
grant select, insert, delete,
  update (tx, occurred_at, namespace_id, kind, resource_kind, resource_id, resource_version, data)
  on occ.events to occ_app;
