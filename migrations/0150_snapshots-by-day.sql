-- No transaction
-- The snapshots of past days are found without the results of today, of which one partner may leave a million.
drop index concurrently if exists read.saved_lookup_of_day_to_snapshot;
create index concurrently saved_lookup_of_day_to_snapshot on read.saved_lookup (((enriched_at at time zone 'UTC')::date), ip) where not snapshotted;
