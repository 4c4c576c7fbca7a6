-- purpose: the durable queue
-- compatible-from: 20261201030400
-- phase: expand

create table occ.work_lane (
  lane text collate "C" not null,
  namespace_id text collate "C" not null,
  epoch bigint not null default 0
    constraint work_lane_epoch_range check (epoch >= 0),
  fence_floor bigint not null default 0
    constraint work_lane_fence_floor_range check (fence_floor >= 0),
  busy boolean not null default false,
  due_at timestamptz,
  upkeep_due_at timestamptz,
  hold_until timestamptz not null default '-infinity',
  constraint work_lane_pkey primary key (lane),
  constraint work_lane_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

comment on table occ.work_lane is 'One row per Agent or Namespace that ever had work; a claim holds a lane.';
comment on column occ.work_lane.lane is 'Agent id, else Namespace id.';
comment on column occ.work_lane.namespace_id is 'Owner.';
comment on column occ.work_lane.epoch is 'Grows at every claim, never reset: the fence of external writes.';
comment on column occ.work_lane.fence_floor is 'Epoch + 1 after a lapsed claim or a cut call.';
comment on column occ.work_lane.busy is 'A claim is live.';
comment on column occ.work_lane.due_at is 'Earliest queued user work.';
comment on column occ.work_lane.upkeep_due_at is 'Earliest queued upkeep work.';
comment on column occ.work_lane.hold_until is 'Quarantine after a lapsed or cut claim.';

create index work_lane_due on occ.work_lane (due_at, lane) where not busy and due_at is not null;
create index work_lane_upkeep on occ.work_lane (upkeep_due_at, lane) where not busy and upkeep_due_at is not null;
create index work_lane_namespace_id on occ.work_lane (namespace_id);
grant select, insert, update (epoch, fence_floor, busy, due_at, upkeep_due_at, hold_until)
  on occ.work_lane to occ_app;

create table occ.work (
  key text collate "C" not null
    constraint work_key_length check (length(key) between 1 and 512),
  kind text collate "C" not null
    constraint work_kind_format check (kind ~ '^[a-z_]+\.[a-z_]+$'),
  lane text collate "C" not null,
  namespace_id text collate "C" not null,
  agent_id text collate "C",
  revision_id text collate "C",
  actor_id text collate "C" not null
    constraint work_actor_id_length check (length(actor_id) between 1 and 200),
  upkeep boolean not null default false,
  state text collate "C" not null default 'queued'
    constraint work_state_known check (state in ('queued', 'claimed', 'succeeded', 'failed_permanent')),
  phase text collate "C" not null default 'forward'
    constraint work_phase_known check (phase in ('forward', 'rollback')),
  step text collate "C"
    constraint work_step_length check (length(step) between 1 and 100),
  previous_revision_id text collate "C",
  available_at timestamptz not null,
  deadline_at timestamptz,
  attempt integer not null default 0
    constraint work_attempt_range check (attempt >= 0),
  attempts_max integer not null
    constraint work_attempts_max_range check (attempts_max between 1 and 50),
  passes integer not null default 0
    constraint work_passes_range check (passes >= 0),
  begun boolean not null default false,
  rearm boolean not null default false,
  lease_token uuid,
  lease_until timestamptz,
  epoch bigint,
  worker_id text collate "C"
    constraint work_worker_id_length check (length(worker_id) between 1 and 200),
  reason_code text collate "C"
    constraint work_reason_code_format check (reason_code ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  cause_code text collate "C"
    constraint work_cause_code_format check (cause_code ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  result jsonb
    constraint work_result_object check (jsonb_typeof(result) = 'object')
    constraint work_result_size check (octet_length(result::text) <= 16384),
  traceparent text collate "C"
    constraint work_traceparent_format check (traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
  last_attempt_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  completed_at timestamptz,
  constraint work_pkey primary key (key),
  constraint work_lane_owner check (lane = coalesce(agent_id, namespace_id)),
  constraint work_claimed_token check ((state = 'claimed') = (lease_token is not null)),
  constraint work_lease_complete check ((lease_token is null) = (lease_until is null)),
  constraint work_lease_epoch check (lease_token is null or epoch is not null),
  constraint work_terminal_completed
    check ((state in ('succeeded', 'failed_permanent')) = (completed_at is not null)),
  constraint work_terminal_reason check (completed_at is null or reason_code is not null),
  constraint work_result_terminal check (result is null or completed_at is not null),
  constraint work_revision_agent check (revision_id is null or agent_id is not null),
  constraint work_previous_revision_agent check (previous_revision_id is null or agent_id is not null),
  constraint work_lane_fkey foreign key (lane) references occ.work_lane (lane)
    on update restrict on delete restrict,
  constraint work_agent_fkey foreign key (namespace_id, agent_id)
    references occ.agents (namespace_id, id) on update restrict on delete restrict,
  constraint work_revision_fkey foreign key (namespace_id, agent_id, revision_id)
    references occ.agent_revisions (namespace_id, agent_id, id) on update restrict on delete restrict,
  constraint work_previous_revision_fkey foreign key (namespace_id, agent_id, previous_revision_id)
    references occ.agent_revisions (namespace_id, agent_id, id) on update restrict on delete restrict,
  constraint work_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

comment on table occ.work is 'Durable work: what is to be done for an Agent or a Namespace, and how far it got.';
comment on column occ.work.key is 'Names the work; a second enqueue of the same key is the same work.';
comment on column occ.work.kind is 'What is to be done. No list: an older binary must be able to meet a newer kind.';
comment on column occ.work.lane is 'Lane it waits in.';
comment on column occ.work.namespace_id is 'Owner.';
comment on column occ.work.agent_id is 'Owning Agent.';
comment on column occ.work.revision_id is 'Revision it is about.';
comment on column occ.work.actor_id is 'Identity that asked for it, or system.';
comment on column occ.work.upkeep is 'Upkeep yields to user work.';
comment on column occ.work.state is 'State of the row.';
comment on column occ.work.phase is 'Whether it goes on or restores the predecessor.';
comment on column occ.work.step is 'Last committed step.';
comment on column occ.work.previous_revision_id is 'Predecessor, written by the publish transaction.';
comment on column occ.work.available_at is 'Not claimed before.';
comment on column occ.work.deadline_at is 'Past it a defer becomes permanent.';
comment on column occ.work.attempt is 'Attempts spent.';
comment on column occ.work.attempts_max is 'Attempts allowed.';
comment on column occ.work.passes is 'Every claim, refunded or not; shown, never judged.';
comment on column occ.work.begun is 'An external effect was dispatched under this claim.';
comment on column occ.work.rearm is 'Asked for again while claimed (upkeep only).';
comment on column occ.work.lease_token is 'Proof of the claim.';
comment on column occ.work.lease_until is 'End of the claim unless renewed.';
comment on column occ.work.epoch is 'Epoch of the claim.';
comment on column occ.work.worker_id is 'Worker that holds or held the claim.';
comment on column occ.work.reason_code is 'Why the row is where it is.';
comment on column occ.work.cause_code is 'Why a rollback began.';
comment on column occ.work.result is 'Facts of the end, only in terminal states.';
comment on column occ.work.traceparent is 'W3C trace context of the request.';
comment on column occ.work.last_attempt_at is 'Time of the last claim.';
comment on column occ.work.created_at is 'Enqueue.';
comment on column occ.work.updated_at is 'Last transition.';
comment on column occ.work.completed_at is 'End.';

create unique index work_one_claim_per_lane on occ.work (lane) where state = 'claimed';
create index work_lane_head on occ.work (lane, upkeep, available_at, created_at, key) where state = 'queued';
create index work_expiring on occ.work (lease_until) where state = 'claimed';
create index work_terminal on occ.work (completed_at) where state in ('succeeded', 'failed_permanent');
create index work_lane_all on occ.work (lane);
create index work_revision on occ.work (namespace_id, agent_id, revision_id);
create index work_previous_revision on occ.work (namespace_id, agent_id, previous_revision_id)
  where previous_revision_id is not null;
create index work_created_at on occ.work (created_at, key);
grant select, insert, delete,
  update (state, phase, step, previous_revision_id, available_at, deadline_at, attempt, passes, begun, rearm,
          lease_token, lease_until, epoch, worker_id, reason_code, cause_code, result, last_attempt_at, updated_at,
          completed_at)
  on occ.work to occ_app;
