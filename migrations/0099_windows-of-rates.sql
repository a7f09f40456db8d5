-- The sweep finds counts that are older than their window, whatever their names.
alter table work.rate add column window_ms bigint;
comment on column work.rate.window_ms is 'Length of the window, milliseconds. Two windows after its last use the row is deleted. Null: not used since version 0.2.0.';

-- As before, and notes the window.
create or replace function work.take_rate(
  rate_name text, ceiling integer, window_ms bigint, wanted integer, at_ms bigint, unused integer, unused_slot bigint
) returns table (granted integer, granted_slot bigint, retry_ms bigint, was_ahead boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  width bigint := greatest(1, take_rate.window_ms / 10);
  now_slot bigint := at_ms / width;
  held work.rate;
  shift bigint;
  tenth bigint;
  first integer := case when take_rate.window_ms > 1000 then 2 else 1 end;
  total integer := 0;
begin
  insert into work.rate (name, slot, used, window_ms)
    values (rate_name, now_slot, array_fill(0, array[11]), take_rate.window_ms)
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
  tenth := 11 - (now_slot - unused_slot);
  if unused > 0 and tenth between 1 and 11 then
    held.used[tenth] := greatest(0, held.used[tenth] - unused);
  end if;
  for i in first .. 11 loop total := total + held.used[i]; end loop;
  granted := greatest(0, least(wanted, ceiling - total));
  granted_slot := now_slot;
  retry_ms := 0;
  if granted = 0 then
    retry_ms := take_rate.window_ms;
    for i in first .. 11 loop
      if held.used[i] > 0 then
        retry_ms := (now_slot + i + 1 - first) * width - at_ms;
        exit;
      end if;
    end loop;
  end if;
  held.used[11] := held.used[11] + granted;
  update work.rate set slot = now_slot, used = held.used, window_ms = take_rate.window_ms where name = rate_name;
  return next;
end $$;
