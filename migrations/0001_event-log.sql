-- Up Migration
create schema eventlog;

comment on schema eventlog is 'The embedded event store: what event-store/postgres writes and nobody else.';

create table eventlog.stream (
  name text primary key,
  revision integer not null,
  truncated_before integer not null default 0,
  expired boolean not null default false
);

create table eventlog.event (
  position bigint generated always as identity primary key,
  stream text not null,
  revision integer not null,
  id uuid not null unique,
  type text not null,
  data json not null,
  metadata json not null,
  unique (stream, revision)
);

comment on table eventlog.stream is 'Every stream there ever was: an expired name is never used again.';
comment on column eventlog.stream.revision is 'Of the last event, from 0.';
comment on column eventlog.stream.truncated_before is 'Events before this revision are dropped.';
comment on table eventlog.event is 'The log. Written by eventlog.append_batch alone.';
comment on column eventlog.event.position is 'The place in the log: rises, with gaps.';

-- Appends a group of appends of one process in one transaction. The advisory lock is taken before any
-- head is read and held until commit, so positions become visible in their own order and a cursor that
-- knows the last position alone never misses an event.
-- Expected: a revision, -1 no stream, -2 any, -4 stream exists.
create function eventlog.append_batch(
  streams text[], expected integer[], counts integer[],
  ids uuid[], types text[], datas json[], metadatas json[]
) returns table (outcome text, revision integer, "position" bigint)
language plpgsql
-- Without it every call plans its statements anew, which costs more than running them.
set plan_cache_mode = force_generic_plan
as $$
declare
  head eventlog.stream;
  present boolean;
  first integer := 1;
  last integer;
  at integer;
  repeated record;
begin
  perform pg_advisory_xact_lock(7239001);
  for i in 1 .. cardinality(streams) loop
    last := first + counts[i] - 1;
    select s.* into head from eventlog.stream s where s.name = streams[i];
    present := found;
    at := case when present then head.revision else -1 end;
    position := null;

    select min(e.revision) as lowest, max(e.revision) as highest, max(e.position) as top,
           count(*) as n, count(*) filter (where e.stream = streams[i]) as own
      into repeated
      from eventlog.event e where e.id = any (ids[first:last]);

    if present and head.expired then
      outcome := 'expired';
      revision := at;
    elsif repeated.n > 0 then
      if repeated.own = counts[i] and repeated.highest - repeated.lowest + 1 = counts[i]
         and (expected[i] = repeated.lowest - 1 or expected[i] < -1) then
        outcome := 'appended';
        revision := repeated.highest;
        position := repeated.top;
      else
        outcome := 'conflict';
        revision := at;
      end if;
    elsif (expected[i] >= -1 and expected[i] <> at) or (expected[i] = -4 and at < 0) then
      outcome := 'conflict';
      revision := at;
    else
      with inserted as (
        insert into eventlog.event (stream, revision, id, type, data, metadata)
        select streams[i], at + o, ids[first + o - 1], types[first + o - 1],
               datas[first + o - 1], metadatas[first + o - 1]
        from generate_series(1, counts[i]) o order by o
        returning eventlog.event.position as p
      )
      select max(p) into position from inserted;
      revision := at + counts[i];
      outcome := 'appended';
      if present then
        update eventlog.stream s set revision = at + counts[i] where s.name = streams[i];
      else
        insert into eventlog.stream (name, revision) values (streams[i], at + counts[i]);
      end if;
    end if;
    first := last + 1;
    return next;
  end loop;
end $$;
