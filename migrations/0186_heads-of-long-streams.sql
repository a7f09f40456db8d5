-- Every version of a row is kept while a transaction is open that may still read it, and each reader of the row goes through all of
-- them. A stream that is appended to hundreds of times a second had as many versions, so that an analyst's statement or a dump of some
-- minutes made every append slower. The row of a long stream is therefore written at each thousandth event alone.
comment on column eventlog.stream.revision is 'Of the last event, from 0. From 1,000 on it may be up to 999 behind: see eventlog.last_revision.';

create function eventlog.last_revision(stream text, recorded integer) returns integer language plpgsql as $$
begin
  if recorded < 1000 then return recorded; end if;
  -- None is there where a truncation has deleted all: it records the revision before.
  return greatest(recorded, (
    select e.revision from eventlog.event e where e.stream = last_revision.stream order by e.revision desc limit 1));
end $$;
comment on function eventlog.last_revision(text, integer) is
  'Revision of a stream''s last event, from the one that its row has. Sees what is committed when it is called, not when its statement began.';

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
  -- As in eventlog.last_revision.
  step constant integer := 1000;
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
    at := case when present then eventlog.last_revision(streams[i], head.revision) else -1 end;
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
      if not present then
        insert into eventlog.stream (name, revision) values (streams[i], revision);
      elsif revision < step or revision / step > head.revision / step then
        update eventlog.stream s set revision = append_batch.revision where s.name = streams[i];
      end if;
    end if;
    first := last + 1;
    return next;
  end loop;
end $$;
