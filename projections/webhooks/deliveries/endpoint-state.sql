-- What "takes deliveries now" and "due" mean, for every query that asks (health-readers.ts, claims.sql). PostgreSQL inlines these
-- functions, so that a query with them uses the same indexes as one with their bodies.

-- How an endpoint takes deliveries, by the columns of its row in read.webhook_health. `opens_after`: failures in a row from which on
-- its circuit breaker holds deliveries back.
create or replace function work.endpoint_state(
  deleted_at timestamptz, paused_at timestamptz, partner_suspended_at timestamptz, failures_in_row integer, opens_after integer
) returns text
language sql immutable parallel safe
as $$
  select case
    when deleted_at is not null then 'deleted'
    when paused_at is not null then 'paused'
    when partner_suspended_at is not null then 'suspended'
    when failures_in_row >= opens_after then 'held_back'
    else 'open' end
$$;

-- Whether a delivery can still be sent, at once or later, as far as its own row in read.webhook_delivery says.
create or replace function work.can_be_sent(state text, payload_expires_at timestamptz, at timestamptz) returns boolean
language sql immutable parallel safe
as $$
  select state = 'pending' and payload_expires_at > at
$$;

-- Whether a delivery may be attempted at `at`, as far as its own row says.
create or replace function work.is_due(
  state text, next_attempt_at timestamptz, payload_expires_at timestamptz, at timestamptz
) returns boolean
language sql immutable parallel safe
as $$
  select state = 'pending' and next_attempt_at <= at and payload_expires_at > at
$$;

-- When a delivery's next attempt was scheduled. A time that is ahead of the present was written by a fast clock.
create or replace function work.scheduled_at(
  cycle_attempts integer, cycle_started_at timestamptz, last_attempt_at timestamptz
) returns timestamptz
language sql immutable parallel safe
as $$
  select case when cycle_attempts = 0 then cycle_started_at else last_attempt_at end
$$;
