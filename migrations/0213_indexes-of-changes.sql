-- No transaction
-- Indexes by which incremental exports find what changed since a position, built beside running processes. BRIN, because it
-- costs a row's writer next to nothing: rows lie about in the order of their positions, and an update of a row stays HOT.

drop index concurrently if exists read.session_changed;
create index concurrently session_changed on read.session using brin (last_position);
drop index concurrently if exists read.expired_session_changed;
create index concurrently expired_session_changed on read.expired_session using brin (changed_position);
drop index concurrently if exists read.reveal_changed;
create index concurrently reveal_changed on read.reveal using brin (last_position);
drop index concurrently if exists read.expired_reveal_changed;
create index concurrently expired_reveal_changed on read.expired_reveal using brin (changed_position);
drop index concurrently if exists read.reveal_unit_changed;
create index concurrently reveal_unit_changed on read.reveal_unit using brin (changed_position);
drop index concurrently if exists read.reservation_changed;
create index concurrently reservation_changed on read.reservation using brin (changed_position);
drop index concurrently if exists read.webhook_delivery_changed;
create index concurrently webhook_delivery_changed on read.webhook_delivery using brin (changed_position);
drop index concurrently if exists read.webhook_attempt_hour_changed;
create index concurrently webhook_attempt_hour_changed on read.webhook_attempt_hour using brin (changed_position);
drop index concurrently if exists read.usage_hour_changed;
create index concurrently usage_hour_changed on read.usage_hour using brin (changed_position);
drop index concurrently if exists read.tracker_calls_hour_changed;
create index concurrently tracker_calls_hour_changed on read.tracker_calls_hour using brin (changed_position);
drop index concurrently if exists read.tracker_hour_changed;
create index concurrently tracker_hour_changed on read.tracker_hour using brin (changed_position);
