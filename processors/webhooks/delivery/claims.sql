-- The functions of claims.ts, run again at a start after this file has changed (migrations/README.md).

-- Step 1 of a claim. The position in the log up to which deliveries of an endpoint may be claimed; null: none. A receiver that calls back
-- finds what its event speaks of: `applied`, the position of the read models of endpoints, deliveries and payloads, must have reached the
-- delivery, and that of the read models of its source the event, which comes earlier in the log than the delivery. All events of the
-- endpoint's deliveries are up to `fanned_out_to`.
create or replace function work.readable_to(applied bigint, sources_applied bigint, fanned_out_to bigint) returns bigint
language sql immutable parallel safe
as $$
  select case
    when sources_applied >= coalesce(fanned_out_to, -1) then applied
    when sources_applied < applied then sources_applied
    when sources_applied is not null then applied end
$$;

-- Step 2. How many attempts may begin beside those that run, and if none, when to ask again. With an open breaker one attempt at a time
-- probes the endpoint, `probe` after the last attempt (contract, Webhooks 5). Otherwise `concurrency` may run.
create or replace function work.attempt_room(
  is_held_back boolean, last_at timestamptz, running integer, concurrency integer, probe interval, at timestamptz,
  out room integer, out again_at timestamptz
)
language sql immutable parallel safe
as $$
  select
    case
      when not is_held_back then greatest(0, concurrency - running)
      when last_at + probe > at or running > 0 then 0
      else 1 end,
    case
      when not is_held_back then case when running >= concurrency then at + interval '25 milliseconds' end
      when last_at + probe > at then last_at + probe
      when running > 0 then at + interval '250 milliseconds' end
$$;

-- Step 3. How many attempts may start at once (GCRA), where those that have started are paid for until `paid_until_ms`. The addend makes
-- up for rounding, which may leave slightly less than a whole start.
create or replace function work.startable(
  paid_until_ms double precision, at_ms double precision, burst_ms double precision, ms_per_start double precision
) returns integer
language sql immutable parallel safe
as $$
  select floor(greatest(-1, least((at_ms + burst_ms - paid_until_ms) / ms_per_start + 1e-6, 1e6)))::integer + 1
$$;

-- Whether a claim is held. One that lasts for longer than a lease was made by a fast clock and counts as ended.
create or replace function work.is_held(lease_until timestamptz, at timestamptz, lease_ahead_after timestamptz) returns boolean
language sql immutable parallel safe
as $$
  select lease_until > at and lease_until <= lease_ahead_after
$$;

-- How long a delivery's cycle has run, milliseconds: its seven days do not count the time in which the endpoint was suspended, that is
-- paused, behind its breaker or of a suspended partner (contract, Webhooks 5). `still_ms` is the total of ended suspensions,
-- `still_since` the start of the current one, `stood_still_ms` the total when the cycle began. Never negative, although clocks differ.
create or replace function work.cycle_ran_ms(
  cycle_started_at timestamptz, stood_still_ms bigint, still_ms bigint, still_since timestamptz, at timestamptz
) returns double precision
language sql immutable parallel safe
as $$
  select greatest(0, extract(epoch from at - cycle_started_at) * 1000 - (still_ms - stood_still_ms)
    - greatest(0, coalesce(extract(epoch from at - still_since) * 1000, 0)))
$$;

-- Claims attempts that are due at `at`: of each endpoint at most as many as wanted, and no more than its breaker, its concurrency and its
-- starts per second allow, due-time first. Returns a row for each endpoint: the claims as a JSON array, and when to poll it again;
-- `again_at` null: after a notification. A claim says by `ahead` that a fast clock had scheduled it too late, and by `has_body` that its
-- body is stored: a worker that has it in memory sends no other.
-- `work.webhook_slot` has one row per endpoint: what its attempts have used of its limits (starts, failures in a row). The
-- lock on that row decides which worker claims; a locked endpoint is skipped.
create or replace function work.claim_attempts(
  holder_id uuid, webhook_ids uuid[], wanted integer[], at timestamptz, lease_until timestamptz, projections text[], sources text[],
  concurrency integer, starts_per_second double precision, failures_to_open integer, probe_ms double precision
) returns table (webhook_id uuid, claims json, again_at timestamptz)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
-- Rows in the order of an index: a limit stops a scan, but no sort.
set enable_sort = off
as $$
#variable_conflict use_column
declare
  usage work.webhook_slot;
  health read.webhook_health;
  applied bigint;
  sources_applied bigint;
  readable_to bigint;
  at_ms double precision := extract(epoch from at) * 1000;
  -- A tenth of a second's starts may come at once; the others are slower by as many, so that no second has more than the limit.
  burst double precision := greatest(1, floor(starts_per_second / 10));
  ms_per_start double precision := 1000 / greatest(starts_per_second - burst, starts_per_second * 0.9);
  burst_ms double precision := (burst - 1) * ms_per_start;
  -- An endpoint at its limit of starts is polled again when half of a burst may start: one start after the other would cost a poll, a
  -- read, an append and a commit each.
  gather_ms double precision := burst_ms / 2;
  running integer;
  room integer;
  startable integer;
  claimed integer;
  last_at timestamptz;
  newest timestamptz;
  -- A fast clock has written any later time; it counts as now.
  ahead_after timestamptz := at + interval '1 minute';
  lease_ahead_after timestamptz := lease_until + interval '1 minute';
  usage_ahead boolean;
begin
  select case when count(p.position) = cardinality(projections) then min(p.position) end into applied
  from read.projection p where p.name = any (projections);
  select case when count(p.position) = cardinality(sources) then coalesce(min(p.position), 9223372036854775807) end
  into sources_applied from read.projection p where p.name = any (sources);

  -- Ordered, because concurrent inserts of the same endpoints in different orders would deadlock.
  insert into work.webhook_slot (webhook_id, paid_until_ms, failures_in_row)
    select w.id, 0, 0 from unnest(webhook_ids) as w (id)
    where not exists (select from work.webhook_slot s where s.webhook_id = w.id)
    order by w.id
    on conflict do nothing;

  for i in 1 .. cardinality(webhook_ids) loop
    webhook_id := webhook_ids[i];
    claims := '[]';
    again_at := null;
    select * into usage from work.webhook_slot s where s.webhook_id = webhook_ids[i] for update skip locked;
    if not found then
      again_at := at + interval '25 milliseconds';
      return next;
      continue;
    end if;
    select * into health from read.webhook_health h where h.webhook_id = webhook_ids[i];
    if not found or health.pending = 0 or work.endpoint_state(health.deleted_at, health.paused_at, health.partner_suspended_at,
      health.failures_in_row, failures_to_open) not in ('open', 'held_back') then
      return next;
      continue;
    end if;

    -- 1. The readable position.
    readable_to := work.readable_to(applied, sources_applied, health.fanned_out_to);

    -- 2. The breaker and the concurrency. Failures in a row are counted twice: the slot counts attempts that are not projected yet, the
    -- read model's count survives a crash of PostgreSQL, which empties the slots (unlogged).
    select count(*) into running from work.delivery_claim c
    where c.webhook_id = webhook_ids[i] and c.running and work.is_held(c.lease_until, at, lease_ahead_after);
    select max(t) into last_at from unnest(array[usage.started_at, health.last_attempt_at]) t where t <= ahead_after;
    select r.room, r.again_at into room, again_at from work.attempt_room(
      greatest(usage.failures_in_row, health.failures_in_row) >= failures_to_open, last_at, running, concurrency,
      probe_ms * interval '1 millisecond', at) r;
    room := least(room, wanted[i]);

    -- 3. Starts per second.
    usage_ahead := coalesce(usage.started_at > ahead_after, false) or usage.paid_until_ms > extract(epoch from ahead_after) * 1000;
    usage.paid_until_ms := case when usage_ahead then at_ms else greatest(usage.paid_until_ms, at_ms) end;
    startable := work.startable(usage.paid_until_ms, at_ms, burst_ms, ms_per_start);
    if room > 0 and startable < 1 then
      again_at := at + (usage.paid_until_ms - gather_ms - at_ms) * interval '1 millisecond';
    end if;
    room := least(room, startable);
    if room < 1 then
      return next;
      continue;
    end if;

    -- 4. Candidates: due, or scheduled too late by a fast clock; each is held by no claim.
    with due as (
      select d.*, false as ahead from read.webhook_delivery d
      where d.webhook_id = webhook_ids[i] and work.is_due(d.state, d.next_attempt_at, d.payload_expires_at, at)
        and d.position <= readable_to
        and not exists (
          select from work.delivery_claim c
          where c.delivery_id = d.delivery_id and c.cycle = d.cycle and c.attempt = d.cycle_attempts + 1
            and work.is_held(c.lease_until, at, lease_ahead_after))
      order by d.next_attempt_at
      limit room),
    too_late as (
      select d.*, true as ahead from read.webhook_delivery d
      where d.webhook_id = webhook_ids[i] and work.can_be_sent(d.state, d.payload_expires_at, at)
        and work.scheduled_at(d.cycle_attempts, d.cycle_started_at, d.last_attempt_at) > ahead_after
        and d.next_attempt_at > at and d.position <= readable_to
        and not exists (
          select from work.delivery_claim c
          where c.delivery_id = d.delivery_id and c.cycle = d.cycle and c.attempt = d.cycle_attempts + 1
            and work.is_held(c.lease_until, at, lease_ahead_after))
      order by work.scheduled_at(d.cycle_attempts, d.cycle_started_at, d.last_attempt_at)
      limit room),
    candidate as materialized (select * from due union all select * from too_late),
    chosen as materialized (
      select d.delivery_id, d.cycle, d.cycle_attempts + 1 as attempt, d.event_id, d.type, d.partner_id, d.created_at, d.newest_secret_only,
             work.cycle_ran_ms(d.cycle_started_at, d.stood_still_ms, health.still_ms, health.still_since, at) as ran_ms,
             d.ahead or usage_ahead as ahead,
             exists (select from read.webhook_payload p where p.event_id = d.event_id) as has_body
      from candidate d
      order by d.next_attempt_at
      limit room),
    made as (
      insert into work.delivery_claim as c (delivery_id, cycle, attempt, webhook_id, holder, running, lease_until)
      select delivery_id, cycle, attempt, webhook_ids[i], holder_id, true, claim_attempts.lease_until from chosen
      on conflict (delivery_id, cycle, attempt) do update
        set holder = excluded.holder, running = true, lease_until = excluded.lease_until
        where not work.is_held(c.lease_until, at, lease_ahead_after)
      returning c.delivery_id)
    select coalesce(json_agg(chosen), '[]'), count(*) into claims, claimed from chosen join made using (delivery_id);

    if claimed > 0 then
      update work.webhook_slot s
      set paid_until_ms = usage.paid_until_ms + claimed * ms_per_start, started_at = at
      where s.webhook_id = webhook_ids[i];
    end if;

    -- 5. The next poll: at once if more may be due; else when the next start is paid for, when the next delivery is due, or, where the
    -- newest delivery has just become due and a read model is behind it, soon: it catches up within a second or so, of which nothing notifies.
    if claimed = room then
      again_at := case when room < startable then at
        else at + greatest(0, usage.paid_until_ms + claimed * ms_per_start - gather_ms - at_ms) * interval '1 millisecond' end;
      return next;
      continue;
    end if;
    select d.next_attempt_at into again_at from read.webhook_delivery d
    where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at > at
    order by d.next_attempt_at
    limit 1;
    select d.next_attempt_at into newest from (
      select n.position, n.next_attempt_at from read.webhook_delivery n
      where n.webhook_id = webhook_ids[i] and n.state = 'pending'
      order by n.position desc
      limit 1) d
    where d.position > coalesce(readable_to, -1);
    if newest <= at and newest > at - interval '2 seconds' then
      again_at := least(again_at, at + interval '100 milliseconds');
    end if;
    return next;
  end loop;
end $$;

-- Records that attempts of one worker have ended: they no longer run, and the breaker counts their failures in the order
-- given. `succeeded` is null where it ignores an attempt.
create or replace function work.record_ended_attempts(
  holder_id uuid, delivery_ids uuid[], cycles integer[], attempts integer[], webhook_ids uuid[], succeeded boolean[]
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  update work.delivery_claim c set running = false
  from unnest(delivery_ids, cycles, attempts) as e (delivery_id, cycle, attempt)
  where c.delivery_id = e.delivery_id and c.cycle = e.cycle and c.attempt = e.attempt and c.holder = holder_id;

  perform from work.webhook_slot s where s.webhook_id = any (webhook_ids) order by s.webhook_id for update;
  update work.webhook_slot s
  set failures_in_row = e.failed + case when e.succeeded_at is null then s.failures_in_row else 0 end
  from (
    select o.webhook_id, max(o.succeeded_at) as succeeded_at,
           count(*) filter (where not o.success and o.n > coalesce(o.succeeded_at, 0)) as failed
    from (
      select u.webhook_id, u.success, u.n, max(u.n) filter (where u.success) over (partition by u.webhook_id) as succeeded_at
      from unnest(webhook_ids, succeeded) with ordinality as u (webhook_id, success, n)
      where u.success is not null) o
    group by o.webhook_id) e
  where s.webhook_id = e.webhook_id;
end $$;
