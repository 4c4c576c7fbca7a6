-- purpose: the queue's transitions, each in one round trip
-- compatible-from: 20261201031000
-- phase: expand

-- Each function locks the lane before it looks, and recomputes what is due in a statement of its own: only a
-- statement that starts after the lock is held sees what others queued in between. They run with the caller's
-- rights and name every table in full.

alter table occ.work add column waiting boolean not null default false;
comment on column occ.work.waiting is
  'Deferred, not in back-off: a change of what it waits for makes it due at once.';
grant update (waiting) on occ.work to occ_app;

create function occ.work_enqueue(
  p_key text, p_kind text, p_lane text, p_namespace_id text, p_agent_id text, p_revision_id text, p_actor_id text,
  p_upkeep boolean, p_attempts_max integer, p_deadline double precision, p_delay double precision,
  p_traceparent text
) returns text language plpgsql as $$
declare
  due timestamptz := clock_timestamp() + make_interval(secs => p_delay);
  began timestamptz;
  same boolean;
begin
  insert into occ.work_lane as l (lane, namespace_id, due_at, upkeep_due_at)
  values (p_lane, p_namespace_id, case when not p_upkeep then due end, case when p_upkeep then due end)
  on conflict (lane) do update
    set due_at = least(l.due_at, excluded.due_at),
        upkeep_due_at = least(l.upkeep_due_at, excluded.upkeep_due_at);
  began := clock_timestamp();
  insert into occ.work (key, kind, lane, namespace_id, agent_id, revision_id, actor_id, upkeep, available_at,
                        deadline_at, attempts_max, traceparent, created_at, updated_at)
  values (p_key, p_kind, p_lane, p_namespace_id, p_agent_id, p_revision_id, p_actor_id, p_upkeep, due,
          began + make_interval(secs => p_deadline), p_attempts_max, p_traceparent, began, began)
  on conflict (key) do nothing;
  if found then
    return 'new';
  end if;
  select w.kind = p_kind and w.lane = p_lane and w.namespace_id = p_namespace_id
         and w.agent_id is not distinct from p_agent_id and w.revision_id is not distinct from p_revision_id
         and w.actor_id = p_actor_id and w.upkeep = p_upkeep
    into same from occ.work w where w.key = p_key;
  return case when same then 'already' else 'conflict' end;
end
$$;
comment on function occ.work_enqueue(text, text, text, text, text, text, text, boolean, integer, double precision,
  double precision, text) is
  'Adds work and locks its lane until the transaction ends. Says new, already (the same row, untouched) or conflict '
  '(the key belongs to other work).';

create function occ.work_arm(
  p_key text, p_kind text, p_lane text, p_namespace_id text, p_agent_id text, p_revision_id text, p_actor_id text,
  p_attempts_max integer, p_deadline double precision, p_delay double precision
) returns boolean language plpgsql as $$
declare
  began timestamptz := clock_timestamp();
  due timestamptz := began + make_interval(secs => p_delay);
begin
  insert into occ.work_lane as l (lane, namespace_id, upkeep_due_at)
  values (p_lane, p_namespace_id, due)
  on conflict (lane) do update set upkeep_due_at = least(l.upkeep_due_at, excluded.upkeep_due_at);
  insert into occ.work as w (key, kind, lane, namespace_id, agent_id, revision_id, actor_id, upkeep, available_at,
                             waiting, deadline_at, attempts_max, created_at, updated_at)
  values (p_key, p_kind, p_lane, p_namespace_id, p_agent_id, p_revision_id, p_actor_id, true, due,
          true, began + make_interval(secs => p_deadline), p_attempts_max, began, began)
  on conflict (key) do update
    set state = case when w.state = 'claimed' then w.state else 'queued' end,
        rearm = w.state = 'claimed', waiting = w.waiting or w.completed_at is not null,
        available_at = case when w.state = 'queued' then least(w.available_at, excluded.available_at)
                            else excluded.available_at end,
        attempt = case when w.completed_at is null then w.attempt else 0 end,
        deadline_at = case when w.completed_at is null then w.deadline_at else excluded.deadline_at end,
        completed_at = null, result = null, updated_at = began
    where w.kind = excluded.kind and w.lane = excluded.lane and w.upkeep
      and w.revision_id is not distinct from excluded.revision_id;
  return found;
end
$$;
comment on function occ.work_arm(text, text, text, text, text, text, text, integer, double precision,
  double precision) is
  'Makes sure that upkeep runs within the delay, whatever state its row is in. False: the key belongs to other work.';

create function occ.work_finish(
  p_lanes text[], p_keys text[], p_tokens uuid[], p_verdicts text[], p_codes text[], p_results text[],
  p_delays double precision[], p_holds double precision[]
) returns setof text language plpgsql as $$
declare
  finished text[];
  ended timestamptz;
begin
  perform from occ.work_lane l where l.lane = any (p_lanes) order by l.lane for no key update;
  ended := clock_timestamp();
  with input as (
    select i.key, i.token, i.verdict, i.code, i.result::jsonb as result,
           ended + make_interval(secs => coalesce(i.delay, 0)) as next_at, i.delay is not null as again
      from unnest(p_keys, p_tokens, p_verdicts, p_codes, p_results, p_delays)
           as i (key, token, verdict, code, result, delay)
  ), done as (
    update occ.work w
       set state = case when w.rearm or i.verdict not in ('complete', 'fail') or (i.verdict = 'complete' and i.again)
                        then 'queued' when i.verdict = 'complete' then 'succeeded' else 'failed_permanent' end,
           completed_at = case when w.rearm or i.verdict not in ('complete', 'fail')
                                    or (i.verdict = 'complete' and i.again) then null else ended end,
           result = case when w.rearm or i.verdict not in ('complete', 'fail')
                              or (i.verdict = 'complete' and i.again) then null else i.result end,
           available_at = case when w.rearm then ended else i.next_at end,
           attempt = case when i.verdict in ('defer', 'hand_over') then greatest(w.attempt - 1, 0)
                          when i.verdict = 'extra' then w.attempts_max - 1
                          when w.rearm or (i.verdict = 'complete' and i.again) then 0
                          else w.attempt end,
           waiting = i.verdict in ('defer', 'complete'),
           reason_code = coalesce(i.code, w.reason_code),
           cause_code = case when i.verdict = 'extra' then coalesce(w.cause_code, i.code) else w.cause_code end,
           rearm = false, lease_token = null, lease_until = null, epoch = null, updated_at = ended
      from input i
     where w.key = i.key and w.lease_token = i.token and w.state = 'claimed' and w.lease_until > ended
    returning w.key
  )
  select coalesce(array_agg(d.key), '{}') into finished from done d;
  update occ.work_lane l
     set busy = false,
         due_at = (select min(w.available_at) from occ.work w
                    where w.lane = l.lane and w.state = 'queued' and not w.upkeep),
         upkeep_due_at = (select min(w.available_at) from occ.work w
                           where w.lane = l.lane and w.state = 'queued' and w.upkeep),
         fence_floor = case when i.hold > 0 then greatest(l.fence_floor, l.epoch + 1) else l.fence_floor end,
         hold_until = case when i.hold > 0 then greatest(l.hold_until, ended + make_interval(secs => i.hold))
                           else l.hold_until end
    from unnest(p_lanes, p_keys, p_holds) as i (lane, key, hold)
   where l.lane = i.lane and i.key = any (finished);
  return query select unnest(finished);
end
$$;
comment on function occ.work_finish(text[], text[], uuid[], text[], text[], text[], double precision[],
  double precision[]) is
  'Ends claims, each under its own token and live lease: complete, fail, defer, retry, extra (one more attempt) or '
  'hand_over. A delay on complete queues the row again. A hold quarantines the lane of a cut call. Returns the keys '
  'that were ended.';

create function occ.work_guard(p_lane text, p_key text, p_token uuid) returns boolean language plpgsql as $$
begin
  perform from occ.work_lane l where l.lane = p_lane for no key update;
  perform from occ.work w
    where w.key = p_key and w.lease_token = p_token and w.state = 'claimed' for no key update;
  -- Asked again once the row is locked: waiting for the lock may have outlived the lease.
  return exists (select from occ.work w
                  where w.key = p_key and w.lease_token = p_token and w.state = 'claimed'
                    and w.lease_until > clock_timestamp());
end
$$;
comment on function occ.work_guard(text, text, uuid) is
  'Locks lane and row of a claim until the transaction ends. False when the claim is not live.';

create function occ.work_recover(p_rows integer, p_lease double precision, p_hold double precision, p_random double precision)
returns setof occ.work language plpgsql as $$
declare
  lanes text[];
  seen timestamptz := clock_timestamp();
begin
  update occ.work w set lease_until = seen + make_interval(secs => p_lease)
   where w.key in (select o.key from occ.work o
                    where o.state = 'claimed' and o.lease_until > seen + make_interval(secs => 2 * p_lease)
                      for no key update skip locked);
  select array_agg(x.lane) into lanes
    from (select l.lane from occ.work w join occ.work_lane l on l.lane = w.lane
           where w.state = 'claimed' and w.lease_until <= seen
           order by w.lease_until limit p_rows for no key update of l skip locked) x;
  if lanes is null then
    return;
  end if;
  -- A claim whose lease did not lapse keeps its lane: a renewal may have come first.
  update occ.work_lane l
     set fence_floor = greatest(l.fence_floor, l.epoch + 1),
         hold_until = greatest(l.hold_until, w.lease_until + make_interval(secs => p_hold))
    from occ.work w
   where l.lane = any (lanes) and w.lane = l.lane and w.state = 'claimed' and w.lease_until <= seen;
  return query
    with lapsed as (
      select w.key, mod((p_random + row_number() over (order by w.key) * 0.6180339887498949)::numeric, 1) as share
        from occ.work w
       where w.lane = any (lanes) and w.state = 'claimed' and w.lease_until <= seen
    )
    update occ.work w
       set state = 'queued', waiting = false, rearm = false,
           available_at = seen + make_interval(
             secs => lapsed.share * least(300, power(2, least(greatest(w.attempt - 1, 0), 30)))),
           reason_code = case when w.attempt > w.attempts_max then w.reason_code else 'LEASE_EXPIRED' end,
           lease_token = null, lease_until = null, epoch = null, updated_at = seen
      from lapsed
     where w.key = lapsed.key and w.state = 'claimed' and w.lease_until <= seen
    returning w.*;
  update occ.work_lane l
     set busy = exists (select from occ.work w where w.lane = l.lane and w.state = 'claimed'),
         due_at = (select min(w.available_at) from occ.work w
                    where w.lane = l.lane and w.state = 'queued' and not w.upkeep),
         upkeep_due_at = (select min(w.available_at) from occ.work w
                           where w.lane = l.lane and w.state = 'queued' and w.upkeep)
   where l.lane = any (lanes);
end
$$;
comment on function occ.work_recover(integer, double precision, double precision, double precision) is
  'Queues lapsed claims again with back-off, holds their lanes past the lease and raises their fence floor. A lease '
  'that ends later than a lease can (the clock went back) is cut to one. Returns the recovered rows.';

create function occ.work_lane_settle(p_lane text) returns boolean language plpgsql as $$
declare
  kept occ.work_lane;
  live boolean;
  user_due timestamptz;
  upkeep_due timestamptz;
begin
  select l.* into kept from occ.work_lane l where l.lane = p_lane for no key update skip locked;
  if not found then
    return false;
  end if;
  live := exists (select from occ.work w where w.lane = p_lane and w.state = 'claimed');
  user_due := (select min(w.available_at) from occ.work w
                where w.lane = p_lane and w.state = 'queued' and not w.upkeep);
  upkeep_due := (select min(w.available_at) from occ.work w
                  where w.lane = p_lane and w.state = 'queued' and w.upkeep);
  update occ.work_lane l set busy = live, due_at = user_due, upkeep_due_at = upkeep_due
   where l.lane = p_lane
     and (l.busy, l.due_at, l.upkeep_due_at) is distinct from (live, user_due, upkeep_due);
  return kept.busy <> live or coalesce(kept.due_at > user_due, user_due is not null)
         or coalesce(kept.upkeep_due_at > upkeep_due, upkeep_due is not null);
end
$$;
comment on function occ.work_lane_settle(text) is
  'Recomputes what is due in a lane. True when work would have been lost or the lane stuck; a time that is merely '
  'early is corrected silently. A lane that somebody else holds is left to them.';

create function occ.work_lanes_sweep(p_lanes integer) returns bigint language sql as $$
  select count(*) filter (where occ.work_lane_settle(suspect.lane)) from (
    select l.lane from occ.work_lane l
      left join lateral (
        select min(w.available_at) filter (where not w.upkeep) as user_due,
               min(w.available_at) filter (where w.upkeep) as upkeep_due
          from occ.work w where w.lane = l.lane and w.state = 'queued') q on true
     where l.busy <> exists (select from occ.work w where w.lane = l.lane and w.state = 'claimed')
        or coalesce(l.due_at > q.user_due, q.user_due is not null)
        or coalesce(l.upkeep_due_at > q.upkeep_due, q.upkeep_due is not null)
     limit p_lanes) suspect
$$;
comment on function occ.work_lanes_sweep(integer) is
  'Settles lanes that look wrong and counts those that were; the count must stay 0.';

create function occ.work_reset(p_key text, p_deadline double precision) returns boolean language plpgsql as $$
declare
  reset_at timestamptz;
  row_lane text := (select w.lane from occ.work w where w.key = p_key);
  reset_done boolean;
begin
  perform from occ.work_lane l where l.lane = row_lane for no key update;
  reset_at := clock_timestamp();
  update occ.work w
     set state = 'queued', attempt = 0, available_at = reset_at, waiting = false, rearm = false, reason_code = null,
         cause_code = case when w.phase = 'rollback' then w.cause_code end, result = null, completed_at = null,
         deadline_at = case when w.deadline_at is not null then reset_at + make_interval(secs => p_deadline) end,
         updated_at = reset_at
   where w.key = p_key and w.state = 'failed_permanent';
  reset_done := found;
  if reset_done then
    perform occ.work_lane_settle(row_lane);
  end if;
  return reset_done;
end
$$;
comment on function occ.work_reset(text, double precision) is
  'Queues a permanently failed row again as if it were new; false when there is none.';

create function occ.work_wake(p_lane text) returns bigint language plpgsql as $$
declare
  woken bigint;
begin
  perform from occ.work_lane l where l.lane = p_lane for no key update;
  update occ.work w set available_at = clock_timestamp()
   where w.lane = p_lane and w.state = 'queued' and w.waiting and w.available_at > clock_timestamp();
  get diagnostics woken = row_count;
  if woken > 0 then
    perform occ.work_lane_settle(p_lane);
  end if;
  return woken;
end
$$;
comment on function occ.work_wake(text) is 'Makes the waiting rows of a lane due now; returns how many.';

revoke all on function occ.work_enqueue(text, text, text, text, text, text, text, boolean, integer,
  double precision, double precision, text) from public;
revoke all on function occ.work_arm(text, text, text, text, text, text, text, integer, double precision,
  double precision) from public;
revoke all on function occ.work_finish(text[], text[], uuid[], text[], text[], text[], double precision[],
  double precision[]) from public;
revoke all on function occ.work_guard(text, text, uuid) from public;
revoke all on function occ.work_recover(integer, double precision, double precision, double precision) from public;
revoke all on function occ.work_lane_settle(text) from public;
revoke all on function occ.work_lanes_sweep(integer) from public;
revoke all on function occ.work_reset(text, double precision) from public;
revoke all on function occ.work_wake(text) from public;
grant execute on function occ.work_enqueue(text, text, text, text, text, text, text, boolean, integer,
  double precision, double precision, text) to occ_app;
grant execute on function occ.work_arm(text, text, text, text, text, text, text, integer, double precision,
  double precision) to occ_app;
grant execute on function occ.work_finish(text[], text[], uuid[], text[], text[], text[], double precision[],
  double precision[]) to occ_app;
grant execute on function occ.work_guard(text, text, uuid) to occ_app;
grant execute on function occ.work_recover(integer, double precision, double precision, double precision) to occ_app;
grant execute on function occ.work_lane_settle(text) to occ_app;
grant execute on function occ.work_lanes_sweep(integer) to occ_app;
grant execute on function occ.work_reset(text, double precision) to occ_app;
grant execute on function occ.work_wake(text) to occ_app;
