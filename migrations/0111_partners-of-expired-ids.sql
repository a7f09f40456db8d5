-- No transaction
-- The nightly run finds the days and partners of expired ids by an index that has both: a day may have millions of ids.
drop index concurrently if exists read.expired_session_of_day;
create index concurrently expired_session_of_day on read.expired_session (day, partner_id);
drop index concurrently if exists read.expired_session_day_idx;
drop index concurrently if exists read.expired_reveal_of_day;
create index concurrently expired_reveal_of_day on read.expired_reveal (day, partner_id);
drop index concurrently if exists read.expired_reveal_day_idx;
