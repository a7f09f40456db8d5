-- Up Migration
create table read.webhook_delivery (
  delivery_id uuid primary key,
  webhook_id uuid not null,
  partner_id uuid not null,
  event_id text not null,
  type text not null,
  state text not null check (state in ('pending', 'delivered', 'failed', 'expired')),
  cycle integer not null,
  attempts integer not null,
  cycle_attempts integer not null,
  cycle_started_at timestamptz not null,
  stood_still_ms bigint not null,
  created_at timestamptz not null,
  position bigint not null,
  payload_expires_at timestamptz not null,
  last_attempt_at timestamptz,
  delivered_at timestamptz,
  next_attempt_at timestamptz,
  http_status integer,
  error text
);
-- What is due, by endpoint: a paused one's millions are passed over by leaving it out.
create index on read.webhook_delivery (webhook_id, next_attempt_at) where state = 'pending';
-- A page of the history of one state; a page of all is put together from one of each.
create index on read.webhook_delivery (webhook_id, state, position);
-- What has expired and is not written down as expired yet.
create index on read.webhook_delivery (payload_expires_at, delivery_id) where state <> 'expired';
comment on table read.webhook_delivery is 'Events on their way to endpoints, and what became of them. Written by projection deliveries.';
comment on column read.webhook_delivery.state is 'pending of a deleted endpoint is told as cancelled, and any whose payload_expires_at has passed as expired: no row is touched for that.';
comment on column read.webhook_delivery.cycle is '1, and one more with each manual retry.';
comment on column read.webhook_delivery.attempts is 'Over all cycles.';
comment on column read.webhook_delivery.cycle_attempts is 'Of this cycle.';
comment on column read.webhook_delivery.stood_still_ms is 'For how long the endpoint had stood still in all when the cycle began.';
comment on column read.webhook_delivery.position is 'Of its DeliveryQueued in the log: the order of the history.';
comment on column read.webhook_delivery.next_attempt_at is 'Null unless it is pending.';
comment on column read.webhook_delivery.http_status is 'Of the last attempt; null where the receiver did not answer.';
comment on column read.webhook_delivery.error is 'Why the last attempt did not succeed.';

create table read.webhook_total (
  webhook_id uuid not null,
  partner_id uuid not null,
  day date not null,
  state text not null,
  deliveries bigint not null,
  primary key (webhook_id, day, state)
);
create index on read.webhook_total (partner_id, state);
comment on table read.webhook_total is 'How many deliveries of an endpoint are in which state, so that nobody counts rows. Written by projection deliveries.';
comment on column read.webhook_total.day is 'UTC day of their creation.';

create table read.webhook_health (
  webhook_id uuid primary key,
  partner_id uuid not null,
  pending bigint not null,
  failures_in_row integer not null,
  last_attempt_at timestamptz,
  paused_at timestamptz,
  deleted_at timestamptz,
  still_since timestamptz,
  still_ms bigint not null,
  fanned_out_to bigint,
  last_position bigint
);
create index on read.webhook_health (partner_id);
comment on table read.webhook_health is 'Whether and how endpoints take deliveries. Written by projection deliveries.';
comment on column read.webhook_health.pending is 'Its deliveries in the state pending.';
comment on column read.webhook_health.failures_in_row is 'Attempts since the last that succeeded: from ten on its breaker holds, and one delivery at a time probes it.';
comment on column read.webhook_health.last_attempt_at is 'Start of its last attempt.';
comment on column read.webhook_health.still_since is 'Since when it is paused or held; null: it is neither. The days of its deliveries'' cycles do not run then.';
comment on column read.webhook_health.still_ms is 'For how long in all it has stood still, without the time since still_since.';
comment on column read.webhook_health.fanned_out_to is 'Greatest log position of what has been queued for it.';
comment on column read.webhook_health.last_position is 'Of the newest event of the endpoint itself, so that none is applied twice.';

-- What follows is lost in a crash of the server, and only lengthens or repeats what was under way then.
create unlogged table work.delivery_claim (
  delivery_id uuid not null,
  cycle integer not null,
  attempt integer not null,
  webhook_id uuid not null,
  holder uuid not null,
  running boolean not null,
  lease_until timestamptz not null,
  primary key (delivery_id, cycle, attempt)
);
create index on work.delivery_claim (webhook_id) where running;
create index on work.delivery_claim (lease_until);
comment on table work.delivery_claim is 'Who attempts which delivery: held until the outcome is projected or the lease ends.';
comment on column work.delivery_claim.holder is 'The worker.';
comment on column work.delivery_claim.running is 'It takes one of the endpoint''s places: its attempt has not ended.';

create unlogged table work.webhook_slot (
  webhook_id uuid primary key,
  paid_until_ms double precision not null,
  failures_in_row integer not null,
  started_at timestamptz
);
comment on table work.webhook_slot is 'What holds over all workers of an endpoint. Its row is locked by whoever claims.';
comment on column work.webhook_slot.paid_until_ms is 'Each start moves it on by its share of a second (GCRA). Milliseconds since the epoch.';
comment on column work.webhook_slot.failures_in_row is 'As in read.webhook_health, and sooner: attempts that have ended and are not projected yet count.';
comment on column work.webhook_slot.started_at is 'When the last attempt was claimed.';

-- Attempts of one worker have ended: their places are free, and the endpoints' failures are counted, in the order given.
-- `succeeded` is null where an attempt came to nothing.
create function work.end_attempts(
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

-- Claims attempts that are due at `at`, of each endpoint at most as many as wanted, and no more than its places, its
-- starts a second and its breaker allow. For each endpoint one row: the claims as a JSON array, and when to look again;
-- `again_at` null: not before something happens. Whose turn it is at an endpoint is decided by the lock on its slot; a
-- slot that is taken is not waited for.
create function work.claim_deliveries(
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
    where c.webhook_id = webhook_ids[i] and c.running and c.lease_until > at;
    room := wanted[i];
    if greatest(slot.failures_in_row, health.failures_in_row) >= held_after then
      last := greatest(slot.started_at, health.last_attempt_at);
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
    slot.paid_until_ms := greatest(slot.paid_until_ms, at_ms);
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

    with due as materialized (
      select d.delivery_id, d.cycle, d.cycle_attempts + 1 as attempt, d.event_id, d.type, d.partner_id, d.created_at,
             extract(epoch from at - d.cycle_started_at) * 1000
               - (health.still_ms - d.stood_still_ms)
               - coalesce(extract(epoch from at - health.still_since) * 1000, 0) as ran_ms
      from read.webhook_delivery d
      where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at <= at
        and d.position <= applied and d.payload_expires_at > at
        and not exists (
          select from work.delivery_claim c
          where c.delivery_id = d.delivery_id and c.cycle = d.cycle and c.attempt = d.cycle_attempts + 1
            and c.lease_until > at)
      order by d.next_attempt_at
      limit room),
    held as (
      insert into work.delivery_claim as c (delivery_id, cycle, attempt, webhook_id, holder, running, lease_until)
      select delivery_id, cycle, attempt, webhook_ids[i], holder_id, true, claim_deliveries.lease_until from due
      on conflict (delivery_id, cycle, attempt) do update
        set holder = excluded.holder, running = true, lease_until = excluded.lease_until
        where c.lease_until <= at
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
