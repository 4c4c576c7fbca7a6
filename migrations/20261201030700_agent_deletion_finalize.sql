-- purpose: the two functions that hold rights the application may not have
-- compatible-from: 20261201030700
-- phase: expand

create function occ.finalize_agent_deletion(
  namespace text, agent text, work_key text, token uuid, claim_epoch bigint, decision jsonb default null
) returns boolean language plpgsql security definer
  set search_path = pg_catalog, occ, pg_temp as $$
declare
  ids_per_row constant integer := 100; -- Keeps each audit row below its bound.
  actor text;
  removed text[];
  parts integer;
begin
  -- Lock order: Namespace, Agent, lane, work.
  perform from occ.namespaces where id = namespace for share;
  perform from occ.agents
    where namespace_id = namespace and id = agent and status = 'deleting' and desired_runtime_state = 'stopped'
      and active_revision_id is null
    for update;
  if not found then
    return false;
  end if;
  perform from occ.work_lane where lane = agent for update;
  select w.actor_id into actor from occ.work w
    where w.key = work_key and w.kind = 'agent.delete' and w.namespace_id = namespace and w.agent_id = agent
      and w.state = 'claimed' and w.lease_token = token and w.epoch = claim_epoch
      and w.lease_until > clock_timestamp()
    for update;
  if not found then
    return false;
  end if;

  with named as (
    select id from occ.iam_identities where namespace_id = namespace and agent_id = agent
    union all select agent
    union all select id from occ.agent_revisions where namespace_id = namespace and agent_id = agent
  ), bindings as (
    delete from occ.iam_bindings b using named n
     where b.identity_id = n.id or (b.resource_kind in ('agent', 'agent_revision', 'service_account')
       and b.resource_id = n.id)
    returning b.id
  ), restrictions as (
    delete from occ.iam_restrictions r using named n
     where r.identity_id = n.id or (r.resource_kind in ('agent', 'agent_revision', 'service_account')
       and r.resource_id = n.id)
    returning r.id
  )
  select coalesce(array_agg(id order by id), '{}') into removed
    from (select id from bindings union select id from restrictions) as ids;

  delete from occ.work w where w.namespace_id = namespace and w.agent_id = agent;
  delete from occ.work_lane where lane = agent;
  delete from occ.agent_observations where namespace_id = namespace and agent_id = agent;
  delete from occ.agent_credentials where namespace_id = namespace and agent_id = agent;
  delete from occ.agent_revisions where namespace_id = namespace and agent_id = agent;
  delete from occ.agents where namespace_id = namespace and id = agent;
  delete from occ.iam_identities where namespace_id = namespace and agent_id = agent;

  parts := greatest(1, ceil(cardinality(removed)::numeric / ids_per_row)::integer);
  insert into occ.audit_events (id, occurred_at, kind, actor_id, action, namespace_id, resource_kind, resource_id,
                                outcome, actor, decision, reason_code, work_key, details)
  select 'aud_' || gen_random_uuid(), now(), 'reconcile', actor, 'openclaw.agents.lifecycle.delete', namespace,
         'agent', agent, 'success', jsonb_build_object('principalId', actor),
         case part when 1 then finalize_agent_deletion.decision end, 'AGENT_DELETED',
         finalize_agent_deletion.work_key,
         jsonb_build_object('part', part, 'parts', parts, 'epoch', claim_epoch,
           'removed', to_jsonb(removed[(part - 1) * ids_per_row + 1 : part * ids_per_row]))
    from generate_series(1, parts) as part;
  insert into occ.events (namespace_id, kind, resource_kind, resource_id)
  values (namespace, 'agent.deleted', 'agent', agent);
  return true;
end
$$;
comment on function occ.finalize_agent_deletion(text, text, text, uuid, bigint, jsonb) is
  'Removes an Agent whose runtime and credentials are gone, with everything that names it, under the live claim of '
  'its agent.delete work. False, and nothing is changed, when that claim is not live or the Agent is not ready for it.';

create function occ.work_take_over(
  work_key text, actor text, request_id text default null, decision jsonb default null
) returns boolean language plpgsql security definer
  set search_path = pg_catalog, occ, pg_temp as $$
declare
  work_lane_name text;
  former_actor text;
  work_namespace text;
  work_agent text;
begin
  select w.lane into work_lane_name from occ.work w where w.key = work_key;
  perform from occ.work_lane l where l.lane = work_lane_name for update;
  select w.actor_id, w.namespace_id, w.agent_id into former_actor, work_namespace, work_agent from occ.work w
    where w.key = work_key and w.kind in ('namespace.delete', 'agent.delete') and w.state = 'failed_permanent'
    for update;
  if not found then
    return false;
  end if;
  update occ.work w
     set state = 'queued', phase = 'forward', step = null, attempt = 0, actor_id = actor, available_at = now(),
         begun = false, rearm = false, reason_code = null, cause_code = null, result = null, completed_at = null,
         worker_id = null, epoch = null, updated_at = now()
   where w.key = work_key;
  update occ.work_lane l set due_at = least(coalesce(l.due_at, now()), now()) where l.lane = work_lane_name;
  insert into occ.audit_events (id, occurred_at, kind, actor_id, action, namespace_id, resource_kind, resource_id,
                                outcome, request_id, actor, decision, work_key, details)
  values ('aud_' || gen_random_uuid(), now(), 'mutation', actor, 'openclaw.work.takeover', work_namespace,
          case when work_agent is null then 'namespace' else 'agent' end, coalesce(work_agent, work_namespace),
          'success', work_take_over.request_id, jsonb_build_object('principalId', actor), work_take_over.decision,
          work_take_over.work_key, jsonb_build_object('formerActorId', former_actor));
  return true;
end
$$;
comment on function occ.work_take_over(text, text, text, jsonb) is
  'Gives a failed deletion to another actor and queues it again. False for any other kind or state.';

revoke all on function occ.finalize_agent_deletion(text, text, text, uuid, bigint, jsonb) from public;
revoke all on function occ.work_take_over(text, text, text, jsonb) from public;
grant execute on function occ.finalize_agent_deletion(text, text, text, uuid, bigint, jsonb) to occ_app;
grant execute on function occ.work_take_over(text, text, text, jsonb) to occ_app;
