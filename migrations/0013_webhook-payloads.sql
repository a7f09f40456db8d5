-- Up Migration
create table read.webhook_payload (
  event_id text primary key,
  partner_id uuid not null,
  type text not null,
  day date not null,
  sealed bytea not null,
  bytes integer not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  last_revision integer not null,
  last_position bigint not null
);
create index on read.webhook_payload (expires_at, event_id);
comment on table read.webhook_payload is 'Bodies of webhook events, once for all endpoints. Written by projection payloads.';
comment on column read.webhook_payload.day is 'UTC day whose key sealed the body.';
comment on column read.webhook_payload.bytes is 'Length of the body.';

create table read.webhook_retained (
  partner_id uuid not null,
  day date not null,
  bytes bigint not null,
  primary key (partner_id, day)
);
comment on table read.webhook_retained is 'How much of bodies is kept. Written by projection payloads.';
comment on column read.webhook_retained.day is 'UTC day on which they expire.';

alter table work.awaited_result add column ready boolean not null default false;
create index on work.awaited_result (partner_id) where ready;
comment on column work.awaited_result.ready is
  'The result is there, and the reveal still pending: nobody subscribed to it, or the queue of deliveries was full.';
comment on table work.awaited_result is
  'Pending reveals, and the address that each waits for. Written by processors enrich-reveals and complete-reveals.';
