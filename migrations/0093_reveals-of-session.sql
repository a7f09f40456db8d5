-- No transaction
-- The dashboard reads the first reveals of a session, which may have any number.
drop index concurrently if exists read.reveal_of_session;
create index concurrently reveal_of_session on read.reveal (session_id, created_at, reveal_id);
drop index concurrently if exists read.reveal_session_id_idx;
