-- Up Migration
-- A preflight looks for up to a hundred origins, and would go through the index's pending entries for each of them.
alter index if exists read.tracker_origins_idx set (fastupdate = off);
select gin_clean_pending_list(to_regclass('read.tracker_origins_idx'));
