-- Up Migration
create table read.reveal (
  reveal_id uuid primary key,
  session_id uuid not null,
  tracker_id uuid not null,
  partner_id uuid not null,
  key_id text,
  user_id text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  completed_at timestamptz,
  billable boolean,
  result json,
  last_revision integer not null,
  last_position bigint not null
);
create index on read.reveal (expires_at);
create index on read.reveal (session_id);
create index on read.reveal (tracker_id) where completed_at is null;
create index on read.reveal (key_id);
comment on table read.reveal is 'Receipts that have not expired. Written by projection reveals.';
comment on column read.reveal.key_id is 'Null: a user of the dashboard asked.';
comment on column read.reveal.user_id is 'Null: an API key asked.';
comment on column read.reveal.billable is 'Whether it has one unit; null while it is pending.';
comment on column read.reveal.result is 'Frozen at completion; null while it is pending.';
comment on column read.reveal.last_revision is 'Of its newest event in its stream.';
comment on column read.reveal.last_position is 'Of its newest event in the log.';

create table read.expired_reveal (
  reveal_id uuid primary key,
  partner_id uuid not null,
  expired_at timestamptz not null
);
comment on table read.expired_reveal is 'Receipts that have expired: told as gone for 60 days. Written by projection reveals.';

create table work.awaited_result (
  reveal_id uuid primary key,
  session_id uuid not null,
  partner_id uuid not null,
  address_digest text not null,
  asked boolean not null,
  expires_at timestamptz not null
);
create index on work.awaited_result (address_digest);
create index on work.awaited_result (reveal_id) where not asked;
create index on work.awaited_result (expires_at);
comment on table work.awaited_result is 'Pending reveals, and the address that each waits for. Written by processor enrich-reveals.';
comment on column work.awaited_result.address_digest is 'Keyed digest, as in the name of the address''s enrichment stream.';
comment on column work.awaited_result.asked is 'False where the shared intake was full: the work is still to be asked for.';
