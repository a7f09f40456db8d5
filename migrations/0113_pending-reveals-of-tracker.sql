-- No transaction
-- A tracker's usage counts its pending reveals, of which there may be any number, in the index alone.
drop index concurrently if exists read.reveal_pending_of_tracker;
create index concurrently reveal_pending_of_tracker on read.reveal (tracker_id, expires_at) where completed_at is null;
drop index concurrently if exists read.reveal_tracker_id_idx;
