-- A clock that was ahead and was put right leaves times that lie ahead. Those further ahead than a minute count as now, so
-- that they delay nothing (domain/kernel/ahead.ts).

-- When the due time of a pending delivery was recorded: its cycle began, or its last attempt did.
create index webhook_delivery_recorded on read.webhook_delivery
  (webhook_id, (case when cycle_attempts = 0 then cycle_started_at else last_attempt_at end)) where state = 'pending';

-- The same of work on an address, and of reservations that are not submitted yet.
create index enrichment_work_recorded on read.enrichment_work ((coalesce(last_attempt_at, requested_at)));

alter table work.domain_look add column recorded_at timestamptz;
update work.domain_look set recorded_at = looked_at;
create index on work.domain_look (recorded_at);
comment on column work.domain_look.recorded_at is 'When due_at was recorded.';

alter table read.usage_source add column closed_at timestamptz;
comment on column read.usage_source.closed_at is
  'When totals were written, or the day of trackers was closed; null: it was not, or by a version before 0.2.0.';

drop function work.take_rate(text, integer, bigint, integer, bigint, integer, bigint);
create function work.take_rate(
  rate_name text, ceiling integer, window_ms bigint, wanted integer, at_ms bigint, unused integer, unused_slot bigint
) returns table (granted integer, granted_slot bigint, retry_ms bigint, was_ahead boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  width bigint := greatest(1, window_ms / 10);
  now_slot bigint := at_ms / width;
  held work.rate;
  shift bigint;
  place bigint;
  first integer := case when window_ms > 1000 then 2 else 1 end;
  total integer := 0;
begin
  insert into work.rate (name, slot, used) values (rate_name, now_slot, array_fill(0, array[11]))
    on conflict (name) do nothing;
  select * into held from work.rate where name = rate_name for update;
  -- Slots that lie further ahead than a minute are a wrong clock's: they count as if they were now's.
  was_ahead := held.slot * width > at_ms + 60000;
  if was_ahead then held.slot := now_slot; end if;
  -- A clock that is behind by less counts into the newest slot.
  now_slot := greatest(now_slot, held.slot);
  shift := now_slot - held.slot;
  if shift >= 11 then
    held.used := array_fill(0, array[11]);
  elsif shift > 0 then
    held.used := held.used[shift + 1 : 11] || array_fill(0, array[shift::integer]);
  end if;
  place := 11 - (now_slot - unused_slot);
  if unused > 0 and place between 1 and 11 then
    held.used[place] := greatest(0, held.used[place] - unused);
  end if;
  for i in first .. 11 loop total := total + held.used[i]; end loop;
  granted := greatest(0, least(wanted, ceiling - total));
  granted_slot := now_slot;
  retry_ms := 0;
  if granted = 0 then
    retry_ms := window_ms;
    for i in first .. 11 loop
      if held.used[i] > 0 then
        retry_ms := (now_slot + i + 1 - first) * width - at_ms;
        exit;
      end if;
    end loop;
  end if;
  held.used[11] := held.used[11] + granted;
  update work.rate set slot = now_slot, used = held.used where name = rate_name;
  return next;
end $$;
comment on function work.take_rate is 'Grants admissions under a rate that holds over all processes.';

-- As before, and what lies ahead is taken as due: each such claim says so by "ahead".
create or replace function work.claim_deliveries(
  holder_id uuid, webhook_ids uuid[], wanted integer[], at timestamptz, lease_until timestamptz, projections text[],
  concurrency integer, starts_per_second double precision, held_after integer, probe_ms double precision
) returns table (webhook_id uuid, claims json, again_at timestamptz)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  slot work.webhook_slot;
  health read.webhook_health;
  applied bigint;
  at_ms double precision := extract(epoch from at) * 1000;
  -- A tenth of a second's starts may come at once. They are taken off the rest, so that no second has more than it may.
  burst double precision := greatest(1, floor(starts_per_second / 10));
  cost double precision := 1000 / greatest(starts_per_second - burst, starts_per_second * 0.9);
  ahead double precision := (burst - 1) * cost;
  retry interval := interval '25 milliseconds';
  running integer;
  room integer;
  most integer;
  last timestamptz;
  claimed integer;
  -- What is recorded later than this was recorded by a clock that was ahead, and counts as now.
  ahead_after timestamptz := at + interval '1 minute';
  lease_ahead_after timestamptz := lease_until + interval '1 minute';
  slot_ahead boolean;
begin
  select case when count(p.position) = cardinality(projections) then min(p.position) end into applied
  from read.projection p where p.name = any (projections);

  -- In one order, so that two who meet at new endpoints wait for each other one way round.
  insert into work.webhook_slot (webhook_id, paid_until_ms, failures_in_row)
    select w.id, 0, 0 from unnest(webhook_ids) as w (id)
    where not exists (select from work.webhook_slot s where s.webhook_id = w.id)
    order by w.id
    on conflict do nothing;

  for i in 1 .. cardinality(webhook_ids) loop
    webhook_id := webhook_ids[i];
    claims := '[]';
    again_at := null;
    select * into slot from work.webhook_slot s where s.webhook_id = webhook_ids[i] for update skip locked;
    if not found then
      again_at := at + retry;
      return next;
      continue;
    end if;
    select * into health from read.webhook_health h where h.webhook_id = webhook_ids[i];
    if not found or health.paused_at is not null or health.deleted_at is not null or health.pending = 0 then
      return next;
      continue;
    end if;

    select count(*) into running from work.delivery_claim c
    where c.webhook_id = webhook_ids[i] and c.running and c.lease_until > at
      and c.lease_until <= lease_ahead_after;
    slot_ahead := coalesce(slot.started_at > ahead_after, false) or slot.paid_until_ms > extract(epoch from ahead_after) * 1000;
    room := wanted[i];
    if greatest(slot.failures_in_row, health.failures_in_row) >= held_after then
      select max(t) into last from unnest(array[slot.started_at, health.last_attempt_at]) t where t <= ahead_after;
      if last + probe_ms * interval '1 millisecond' > at then
        room := 0;
        again_at := last + probe_ms * interval '1 millisecond';
      elsif running > 0 then
        room := 0;
        again_at := at + retry * 10;
      else
        room := least(room, 1);
      end if;
    elsif running >= concurrency then
      room := 0;
      again_at := at + retry;
    else
      room := least(room, concurrency - running);
    end if;
    slot.paid_until_ms := case when slot_ahead then at_ms else greatest(slot.paid_until_ms, at_ms) end;
    -- A little more, as fractions add up to a little less.
    most := floor(greatest(-1, least((at_ms + ahead - slot.paid_until_ms) / cost + 1e-6, 1e6)))::integer + 1;
    if room > 0 and most < 1 then
      room := 0;
      again_at := at + (slot.paid_until_ms - ahead - at_ms) * interval '1 millisecond';
    end if;
    room := least(room, most);
    if room < 1 then
      return next;
      continue;
    end if;

    with candidate as materialized (
      (select d.*, false as ahead from read.webhook_delivery d
       where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at <= at
         and d.position <= applied and d.payload_expires_at > at
         and not exists (
           select from work.delivery_claim c
           where c.delivery_id = d.delivery_id and c.cycle = d.cycle and c.attempt = d.cycle_attempts + 1
             and c.lease_until > at and c.lease_until <= lease_ahead_after)
       order by d.next_attempt_at
       limit room)
      union all
      (select d.*, true as ahead from read.webhook_delivery d
       where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at > at
         and case when d.cycle_attempts = 0 then d.cycle_started_at else d.last_attempt_at end > ahead_after
         and d.position <= applied and d.payload_expires_at > at
         and not exists (
           select from work.delivery_claim c
           where c.delivery_id = d.delivery_id and c.cycle = d.cycle and c.attempt = d.cycle_attempts + 1
             and c.lease_until > at and c.lease_until <= lease_ahead_after)
       limit room)),
    due as materialized (
      select d.delivery_id, d.cycle, d.cycle_attempts + 1 as attempt, d.event_id, d.type, d.partner_id, d.created_at,
             -- What stood still by a wrong clock is not taken off twice, and not put on.
             greatest(0, extract(epoch from at - d.cycle_started_at) * 1000
               - (health.still_ms - d.stood_still_ms)
               - greatest(0, coalesce(extract(epoch from at - health.still_since) * 1000, 0))) as ran_ms,
             d.ahead or slot_ahead as ahead
      from candidate d
      order by d.next_attempt_at
      limit room),
    held as (
      insert into work.delivery_claim as c (delivery_id, cycle, attempt, webhook_id, holder, running, lease_until)
      select delivery_id, cycle, attempt, webhook_ids[i], holder_id, true, claim_deliveries.lease_until from due
      on conflict (delivery_id, cycle, attempt) do update
        set holder = excluded.holder, running = true, lease_until = excluded.lease_until
        where c.lease_until <= at or c.lease_until > lease_ahead_after
      returning c.delivery_id)
    select coalesce(json_agg(due), '[]'), count(*) into claims, claimed from due join held using (delivery_id);

    if claimed > 0 then
      update work.webhook_slot s
      set paid_until_ms = slot.paid_until_ms + claimed * cost, started_at = at
      where s.webhook_id = webhook_ids[i];
    end if;
    if claimed = room then
      again_at := at;
    else
      select min(d.next_attempt_at) into again_at from read.webhook_delivery d
      where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at > at;
    end if;
    return next;
  end loop;
end $$;
