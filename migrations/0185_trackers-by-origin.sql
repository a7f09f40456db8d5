-- No transaction
-- Its condition is that of no other index: of few trackers PostgreSQL would go through all for each origin of a preflight, by an
-- index that has the same condition.
drop index concurrently if exists read.tracker_live_origins;
create index concurrently tracker_live_origins on read.tracker using gin (origins) with (fastupdate = off)
  where coalesce(disabled_at, deleted_at) is null;
