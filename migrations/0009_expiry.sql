-- Up Migration
-- A sweep goes through what has expired in this order, also where very many expire at one instant.
create index on read.session (expires_at, session_id);
drop index if exists read.session_expires_at_idx;
create index on read.reveal (expires_at, reveal_id);
drop index if exists read.reveal_expires_at_idx;

alter table read.expired_session add column day date not null;
alter table read.expired_reveal add column day date not null;
create index on read.expired_session (day);
create index on read.expired_reveal (day);
comment on column read.expired_session.day is 'UTC day of the sweep: the stream expired-<partner>-<day> tells of it.';
comment on column read.expired_reveal.day is 'UTC day of the sweep: the stream expired-<partner>-<day> tells of it.';
