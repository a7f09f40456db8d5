-- Up Migration
create schema work;

comment on schema work is 'What coordinates processes. Not rebuilt from events.';

create table work.processor (
  name text primary key,
  position bigint,
  stopped_by text
);
comment on table work.processor is 'How far each event-following processor has come.';

create table work.claim (
  item text not null,
  cycle integer not null,
  attempt integer not null,
  lease_until timestamptz not null,
  primary key (item, cycle, attempt)
);
create index on work.claim (lease_until);
comment on table work.claim is 'Who attempts what: held until the attempt''s outcome is projected or the lease ends.';

create table work.keyring (
  name text primary key,
  master_key_id text not null,
  sealed bytea not null
);
comment on table work.keyring is 'Keys of the service, sealed under the master key. Back it up with the event store.';

create table work.process (
  process_id uuid primary key,
  role text not null,
  seen_at timestamptz not null
);
comment on table work.process is 'Processes that are alive, by their own heartbeat.';

-- Rates over all processes. Lost in a crash of the server, as a rate may be.
create unlogged table work.rate (
  name text primary key,
  slot bigint not null,
  used integer[] not null
);
comment on table work.rate is 'Admissions in the last eleven tenths of each limit''s window.';

-- Grants up to `wanted` admissions under `ceiling` a window of `window_ms`, at the caller's clock `at_ms`.
-- Ten slots make a window; eleven are summed, so that no window of that length ever holds more.
create function work.take_rate(rate_name text, ceiling integer, window_ms bigint, wanted integer, at_ms bigint)
returns table (granted integer, retry_ms bigint)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  width bigint := greatest(1, window_ms / 10);
  now_slot bigint := at_ms / width;
  held work.rate;
  shift bigint;
  total integer := 0;
begin
  insert into work.rate (name, slot, used) values (rate_name, now_slot, array_fill(0, array[11]))
    on conflict (name) do nothing;
  select * into held from work.rate where name = rate_name for update;
  -- A clock that is behind counts into the newest slot.
  now_slot := greatest(now_slot, held.slot);
  shift := now_slot - held.slot;
  if shift >= 11 then
    held.used := array_fill(0, array[11]);
  elsif shift > 0 then
    held.used := held.used[shift + 1 : 11] || array_fill(0, array[shift::integer]);
  end if;
  for i in 1 .. 11 loop total := total + held.used[i]; end loop;
  granted := greatest(0, least(wanted, ceiling - total));
  retry_ms := 0;
  if granted = 0 then
    retry_ms := window_ms;
    for i in 1 .. 11 loop
      if held.used[i] > 0 then
        retry_ms := (now_slot - 11 + i + 11) * width - at_ms;
        exit;
      end if;
    end loop;
  end if;
  held.used[11] := held.used[11] + granted;
  update work.rate set slot = now_slot, used = held.used where name = rate_name;
  return next;
end $$;
