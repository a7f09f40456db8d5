-- No transaction
-- A visitor may begin any number of sessions in one tab: a hash index takes a time that grows with them for each new row.
drop index concurrently if exists read.session_of_stream;
create index concurrently session_of_stream on read.session (stream, expires_at);
drop index concurrently if exists read.session_stream_idx;
