-- Up Migration
create table read.webhook_endpoint (
  webhook_id uuid primary key,
  partner_id uuid not null,
  name text not null,
  url text not null,
  events text[] not null,
  tracker_id uuid,
  enabled boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  secret json,
  previous_secret json,
  secret_rotation_until timestamptz,
  last_revision integer not null,
  last_position bigint not null
);
create index on read.webhook_endpoint (partner_id, created_at, webhook_id);
comment on table read.webhook_endpoint is
  'Webhook endpoints of partners, deleted ones too: told of for 90 days. Written by projection webhooks.';
comment on column read.webhook_endpoint.tracker_id is 'null: all trackers of the partner.';
comment on column read.webhook_endpoint.secret is
  'Signs deliveries. Sealed under the master key that its master_key_id names, bound to webhook_id; null once deleted.';
comment on column read.webhook_endpoint.previous_secret is 'Signs as well until secret_rotation_until.';

create table read.webhook_subscription (
  webhook_id uuid not null,
  partner_id uuid not null,
  tracker_id uuid,
  events text[] not null,
  from_position bigint not null,
  to_position bigint,
  primary key (webhook_id, from_position)
);
create index on read.webhook_subscription (partner_id, to_position);
comment on table read.webhook_subscription is
  'When an endpoint was enabled with which events, by log position, so that it comes out the same on a replay. Written by projection webhooks.';
comment on column read.webhook_subscription.tracker_id is 'null: all trackers of the partner.';
comment on column read.webhook_subscription.from_position is
  'It takes what stands after this position and, unless null, before to_position.';
