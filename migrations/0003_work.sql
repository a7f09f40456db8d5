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

-- Grants up to `wanted` admissions under `ceiling` a window of `window_ms`, at the caller's clock `at_ms`, and takes back
-- `unused` ones that were granted in `unused_slot`. Ten slots make a window. Of a second, eleven are summed, so that no
-- second ever holds more; of longer windows ten, so that who waits a window is admitted, and one may hold a tenth more.
create function work.take_rate(
  rate_name text, ceiling integer, window_ms bigint, wanted integer, at_ms bigint, unused integer, unused_slot bigint
) returns table (granted integer, granted_slot bigint, retry_ms bigint)
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
  -- A clock that is behind counts into the newest slot.
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
