-- Up Migration
alter table work.process add column beats bigint not null default 0;
comment on column work.process.beats is 'Counts the heartbeats. Others watch it by their own monotonic clock: a count that stands still is a process that is gone.';
comment on column work.process.seen_at is 'The last heartbeat, by the clock of the process.';

create table work.lease (
  name text primary key,
  number bigint not null,
  process_id uuid
);
comment on table work.lease is 'Which process runs which group of projections and processors.';
comment on column work.lease.number is 'Fencing token: rises with each new holder. Checkpoints are written under it.';
comment on column work.lease.process_id is 'The holder; null where it gave the lease back.';
