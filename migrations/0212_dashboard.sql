-- What the dashboard of 0.3.0 keeps: recoveries of webhooks, evidence of installed pixels, teams, activity.

-- Recoveries of webhooks, the last attempts of a delivery, and why an endpoint's last attempt failed.
create table read.webhook_recovery (
  recovery_id uuid primary key,
  webhook_id uuid not null,
  partner_id uuid not null,
  since timestamptz not null,
  held_back boolean not null,
  deliveries bigint not null,
  created_at timestamptz not null,
  position bigint not null,
  completed_at timestamptz,
  pending bigint not null,
  delivered bigint not null,
  failed bigint not null,
  cancelled bigint not null,
  expired bigint not null
);
create index webhook_recovery_open on read.webhook_recovery (created_at) where completed_at is null;
create index webhook_recovery_created_at_idx on read.webhook_recovery (created_at);
create index webhook_recovery_webhook_id_created_at_idx on read.webhook_recovery (webhook_id, created_at);
comment on table read.webhook_recovery is 'Recoveries of endpoints after an outage, and the number of their deliveries by state. Written by projection deliveries.';
comment on column read.webhook_recovery.recovery_id is 'Id of the recovery.';
comment on column read.webhook_recovery.webhook_id is 'The endpoint.';
comment on column read.webhook_recovery.partner_id is 'The partner that owns the endpoint.';
comment on column read.webhook_recovery.since is 'It covers deliveries that were created from then on.';
comment on column read.webhook_recovery.held_back is 'Whether the breaker was open at the request, so that it covers each pending delivery.';
comment on column read.webhook_recovery.deliveries is 'Deliveries that it covers, as counted at the request.';
comment on column read.webhook_recovery.created_at is 'Time of the request.';
comment on column read.webhook_recovery.position is 'Log position of the request: it covers deliveries that were queued before.';
comment on column read.webhook_recovery.completed_at is 'When all of its deliveries had been made due; null: that is under way.';
comment on column read.webhook_recovery.pending is 'Its deliveries in the state pending.';
comment on column read.webhook_recovery.delivered is 'Its deliveries in the state delivered.';
comment on column read.webhook_recovery.failed is 'Its deliveries in the state failed, until they are retried again.';
comment on column read.webhook_recovery.cancelled is 'Its deliveries that were pending when a later recovery took them over.';
comment on column read.webhook_recovery.expired is 'Its deliveries in the state expired.';
alter table read.webhook_delivery
  add column last_duration_ms integer,
  add column earlier_attempts json,
  add column recovery_id uuid;
comment on column read.webhook_delivery.last_duration_ms is 'Duration of the last attempt, milliseconds; null before the first one.';
comment on column read.webhook_delivery.earlier_attempts is 'Up to 19 attempts before the last one, the oldest first: started_at, duration_ms, http_status, error. null: none.';
comment on column read.webhook_delivery.recovery_id is 'The recovery that its cycle is part of; null: none.';
alter table read.webhook_health add column last_error text, add column last_http_status integer;
comment on column read.webhook_health.last_error is 'Why the last attempt failed; null: it succeeded, or there was none.';
comment on column read.webhook_health.last_http_status is 'Status of the response to the last attempt; null: none.';
