-- Whoever logs in to the database may take any advisory lock, and so stop all appends. These are locks that only the
-- owner of the tables can take.
create table eventlog.writer (only_one boolean primary key default true check (only_one));
insert into eventlog.writer default values;
comment on table eventlog.writer is 'One row, which is locked by the transaction that appends.';
comment on column eventlog.writer.only_one is 'True.';

create function eventlog.lock_writer() returns boolean language plpgsql as $$
begin
  perform from eventlog.writer for update;
  if not found then raise exception 'eventlog.writer has no row: nothing would keep two writers apart'; end if;
  return true;
end $$;
comment on function eventlog.lock_writer() is 'Waits until no other transaction appends, and keeps all others waiting.';

create table work.only_one_rebuild ();
comment on table work.only_one_rebuild is 'Empty; locked by the rebuild that runs.';
create table work.only_one_rotation ();
comment on table work.only_one_rotation is 'Empty; locked by the change of the master key that runs.';
create table work.only_one_grant ();
comment on table work.only_one_grant is 'Empty; locked while roles of analysts are changed.';

-- Appends a group of appends of one process in one transaction. The writers' row is locked before any
-- head is read and held until commit, so positions become visible in their own order and a cursor that
-- knows the last position alone never misses an event. Every statement of the function has a snapshot of its own, so
-- what is read after the lock is what the writer before has committed.
-- Expected: a revision, -1 no stream, -2 any, -4 stream exists.
create or replace function eventlog.append_batch(
  streams text[], expected integer[], counts integer[],
  ids uuid[], types text[], datas json[], metadatas json[]
) returns table (outcome text, revision integer, "position" bigint)
language plpgsql
-- Without it every call plans its statements anew, which costs more than running them.
set plan_cache_mode = force_generic_plan
-- As since 0010.
set enable_seqscan = off
as $$
declare
  head eventlog.stream;
  present boolean;
  first integer := 1;
  last integer;
  at integer;
  repeated record;
begin
  perform eventlog.lock_writer();
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
