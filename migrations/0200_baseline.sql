-- The schema of 0.2.0. A fresh database begins with it; one that 0.2.0 has migrated counts as having run it.
create schema eventlog;
comment on schema eventlog is 'The embedded event store: what event-store/postgres writes and nobody else.';
create schema read;
comment on schema read is 'Read models: each table is written by one projection alone and can be rebuilt from the event store.';
create schema work;
comment on schema work is 'What coordinates processes. Not rebuilt from events.';
create schema analytics;
comment on schema analytics is 'Views for analysts, over all partners: no address, label, secret, payload or e-mail, not even sealed or as a digest. Read through the role <database>_analyst, which "doorplate analytics grant" makes.';

create table eventlog.stream (
  name text primary key,
  revision integer not null,
  truncated_before integer default 0 not null,
  expired boolean default false not null,
  expired_at timestamptz
);
comment on table eventlog.stream is 'The streams there are, and those that were deleted: their names are refused until they are forgotten.';
comment on column eventlog.stream.revision is 'Of the last event, from 0.';
comment on column eventlog.stream.truncated_before is 'Events before this revision are dropped.';
comment on column eventlog.stream.expired_at is 'When the stream was deleted; null: it was not, or before this column was there.';

create table eventlog.event (
  "position" bigint generated always as identity primary key,
  stream text not null,
  revision integer not null,
  id uuid not null,
  type text not null,
  data json not null,
  metadata json not null,
  constraint event_id_key unique (id),
  constraint event_stream_revision_key unique (stream, revision)
);
comment on table eventlog.event is 'The log. Written by eventlog.append_batch alone.';
comment on column eventlog.event."position" is 'The place in the log: rises, with gaps.';

create table eventlog.writer (
  only_one boolean default true primary key,
  constraint writer_only_one_check check (only_one)
);
comment on table eventlog.writer is 'One row, which is locked by the transaction that appends.';
comment on column eventlog.writer.only_one is 'True.';

create table read.projection (
  name text primary key,
  "position" bigint,
  stopped_by text
);
comment on table read.projection is 'How far each projection has come. The rows and what they speak of commit together.';
comment on column read.projection."position" is 'All events up to here are applied; null before the first.';
comment on column read.projection.stopped_by is 'The event that this projection could not apply, and why; null while it runs.';

create table read.partner (
  partner_id uuid primary key,
  name text not null,
  created_at timestamptz not null,
  requests_per_second integer default 50 not null,
  new_enrichments_per_day integer,
  pending_enrichments integer default 10000 not null,
  keys integer default 100 not null,
  domains integer default 100 not null,
  company_signals boolean default false not null,
  constraint partner_name_key unique (name)
);
comment on table read.partner is 'Partner accounts. Written by projection partners.';
comment on column read.partner.requests_per_second is 'The most that a dashboard user may give a key.';
comment on column read.partner.new_enrichments_per_day is 'The most that a dashboard user may give a key; null: no ceiling.';
comment on column read.partner.pending_enrichments is 'The most that a dashboard user may give a key.';
comment on column read.partner.keys is 'Keys, neither revoked nor expired, up to which dashboard users may make more.';
comment on column read.partner.domains is 'Custom domains that the partner may have, deleted ones apart.';
comment on column read.partner.company_signals is 'Whether a dashboard user may give a key company signals.';

create table read.api_key (
  key_id text primary key,
  partner_id uuid not null,
  name text not null,
  hash text not null,
  requests_per_second integer not null,
  new_enrichments_per_day integer,
  pending_enrichments integer not null,
  company_signals boolean not null,
  expires_at timestamptz,
  created_at timestamptz not null,
  revoked_at timestamptz,
  constraint api_key_hash_key unique (hash)
);
create index api_key_partner_id_idx on read.api_key (partner_id);
comment on table read.api_key is 'API keys and their limits, by the SHA-256 of the key. Written by projection partners.';
comment on column read.api_key.new_enrichments_per_day is 'Null: no cap. 0: saved addresses only.';

create table read.saved_lookup (
  ip text primary key,
  match_type text not null,
  network json not null,
  company json,
  sources text[] not null,
  enriched_at timestamptz not null,
  fresh_until timestamptz not null,
  needs_company_enrichment boolean not null,
  snapshotted boolean default false not null
);
create index saved_lookup_to_snapshot on read.saved_lookup (ip) where (NOT snapshotted);
comment on table read.saved_lookup is 'What is known of an address, shared by all partners. Written by projection lookups.';
comment on column read.saved_lookup.enriched_at is 'When it was found; midnight of that UTC day once it is snapshotted.';
comment on column read.saved_lookup.fresh_until is 'From then on it is stale; midnight of that UTC day once it is snapshotted.';
comment on column read.saved_lookup.snapshotted is 'Whether its times are cut to their UTC days, and the events behind them replaced by a snapshot.';

create table read.enrichment_work (
  ip text primary key,
  round integer not null,
  kind text not null,
  requested_at timestamptz not null,
  attempts integer not null,
  next_attempt_at timestamptz not null,
  last_attempt_at timestamptz,
  asked_by uuid default '00000000-0000-0000-0000-000000000000'::uuid not null
);
create index enrichment_work_next_attempt_at_idx on read.enrichment_work (next_attempt_at);
create index enrichment_work_recorded on read.enrichment_work (COALESCE(last_attempt_at, requested_at));
create index enrichment_work_asked_by on read.enrichment_work (asked_by, next_attempt_at);
comment on table read.enrichment_work is 'Enrichments under way, one row an address. Written by projection lookups.';
comment on column read.enrichment_work.kind is 'first, refresh or completion.';
comment on column read.enrichment_work.asked_by is 'The partner that asked first; of a reveal''s work, and of work from before this column: zeros.';

create table read.reservation (
  reservation_id uuid primary key,
  partner_id uuid not null,
  key_id text not null,
  ip text not null,
  kind text not null,
  state text not null,
  made_at timestamptz not null,
  ended_at timestamptz,
  constraint reservation_state_check check ((state = ANY (ARRAY['reserved'::text, 'submitted'::text, 'completed'::text, 'gave_up'::text, 'settled'::text])))
);
create index reservation_partner_id_ip_made_at_reservation_id_idx on read.reservation (partner_id, ip, made_at DESC, reservation_id DESC);
create index reservation_partner_id_made_at_idx on read.reservation (partner_id, made_at) where (state = ANY (ARRAY['reserved'::text, 'submitted'::text]));
create index reservation_made_at_idx on read.reservation (made_at) where (state = 'reserved'::text);
create index reservation_partner_id_ended_at_idx on read.reservation (partner_id, ended_at);
create index reservation_ended_at_idx on read.reservation (ended_at) where (ended_at IS NOT NULL);
comment on table read.reservation is 'What partners asked to be enriched, against allowance and pending limit. Written by projection lookups.';
comment on column read.reservation.state is 'reserved: not yet submitted. submitted: under way. completed, gave_up: as its enrichment ended. settled: ended without one.';

create table read.usage_hour (
  key_id text,
  hour timestamptz,
  outcome text,
  source text,
  requests bigint not null,
  cache_hits bigint not null,
  duration_us bigint not null,
  primary key (key_id, hour, outcome, source)
);
comment on table read.usage_hour is 'Lookup answers by key, UTC hour and outcome. Written by projection usage.';
comment on column read.usage_hour.source is 'The usage stream that counted them: one a process and day.';
comment on column read.usage_hour.duration_us is 'Sum of processing times, microseconds.';

create table read.usage_source (
  source text primary key,
  day date not null,
  totalled boolean not null,
  closed_at timestamptz
);
create index usage_source_day_idx on read.usage_source (day) where (NOT totalled);
comment on table read.usage_source is 'Usage streams, and whether totals stand for their counts yet. Written by projection usage.';
comment on column read.usage_source.closed_at is 'When totals were written, or the day of trackers was closed; null: it was not, or by a version before 0.2.0.';

create table read.tracker (
  tracker_id uuid primary key,
  partner_id uuid not null,
  name text not null,
  origins text[] not null,
  customer_reference text,
  created_at timestamptz not null,
  disabled_at timestamptz,
  deleted_at timestamptz
);
create index tracker_partner_id_created_at_tracker_id_idx on read.tracker (partner_id, created_at, tracker_id);
create index tracker_origins_idx on read.tracker using gin (origins) where ((disabled_at IS NULL) AND (deleted_at IS NULL));
comment on table read.tracker is 'Trackers (pixels) of partners, deleted ones too. Written by projection trackers.';
comment on column read.tracker.origins is 'Where the pixel may run: serialised origins, or https://*.host.';

create table read.session (
  session_id uuid primary key,
  partner_id uuid not null,
  tracker_id uuid not null,
  visitor_country text,
  sealed text not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  "position" bigint not null,
  stream text not null,
  last_revision integer not null,
  last_position bigint not null
);
create index session_partner_id_position_idx on read.session (partner_id, "position");
create index session_tracker_id_position_idx on read.session (tracker_id, "position");
create index session_stream_idx on read.session using hash (stream);
create index session_expires_at_session_id_idx on read.session (expires_at, session_id);
comment on table read.session is 'Sessions that have not expired. Written by projection sessions.';
comment on column read.session.visitor_country is 'ISO 3166-1 alpha-2, estimated from the address; null: unknown.';
comment on column read.session.sealed is 'Address and labels, sealed under the key of the UTC day of first_seen_at, base64.';
comment on column read.session."position" is 'Of SessionCreated in the log: the order of the feed.';
comment on column read.session.stream is 'The tab''s stream: several sessions may share it.';
comment on column read.session.last_revision is 'Of the session''s newest event in its stream.';
comment on column read.session.last_position is 'Of the session''s newest event in the log.';

create table read.expired_session (
  session_id uuid primary key,
  partner_id uuid not null,
  expired_at timestamptz not null,
  day date not null
);
create index expired_session_day_idx on read.expired_session (day);
comment on table read.expired_session is 'Sessions that have expired: told as gone for 60 days. Written by projection sessions.';
comment on column read.expired_session.day is 'UTC day of the sweep: the stream expired-<partner>-<day> tells of it.';

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
create index reveal_session_id_idx on read.reveal (session_id);
create index reveal_tracker_id_idx on read.reveal (tracker_id) where (completed_at IS NULL);
create index reveal_key_id_idx on read.reveal (key_id);
create index reveal_expires_at_reveal_id_idx on read.reveal (expires_at, reveal_id);
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
  expired_at timestamptz not null,
  day date not null
);
create index expired_reveal_day_idx on read.expired_reveal (day);
comment on table read.expired_reveal is 'Receipts that have expired: told as gone for 60 days. Written by projection reveals.';
comment on column read.expired_reveal.day is 'UTC day of the sweep: the stream expired-<partner>-<day> tells of it.';

create table read.reveal_unit (
  reveal_id uuid primary key,
  partner_id uuid not null,
  tracker_id uuid not null,
  key_id text,
  user_id text,
  completed_at timestamptz not null,
  units smallint not null,
  "position" bigint not null,
  ledger_number integer
);
create index reveal_unit_key_id_completed_at_idx on read.reveal_unit (key_id, completed_at);
create index reveal_unit_tracker_id_completed_at_idx on read.reveal_unit (tracker_id, completed_at);
create index reveal_unit_partner_id_completed_at_idx on read.reveal_unit (partner_id, completed_at);
create index reveal_unit_partner_id_position_idx on read.reveal_unit (partner_id, "position");
comment on table read.reveal_unit is 'Every completed reveal and its unit; outlives the receipt. Written by projection reveal-units.';
comment on column read.reveal_unit.key_id is 'Null: a user of the dashboard asked.';
comment on column read.reveal_unit.user_id is 'Null: an API key asked.';
comment on column read.reveal_unit.units is '1: the result was nonempty. Else 0.';
comment on column read.reveal_unit."position" is 'Of its completion in the log.';
comment on column read.reveal_unit.ledger_number is 'Of its entry in the partner''s ledger; null until it has one.';

create table read.tracker_calls_hour (
  tracker_id uuid,
  hour timestamptz,
  source text,
  capture_requests bigint not null,
  api_requests bigint not null,
  completed_responses bigint not null,
  company_responses bigint not null,
  primary key (tracker_id, hour, source)
);
create index tracker_calls_hour_hour_idx on read.tracker_calls_hour (hour);
comment on table read.tracker_calls_hour is 'Requests of pixels and calls of partners by tracker and UTC hour. Written by projection tracker-usage.';
comment on column read.tracker_calls_hour.source is 'The usage stream that counted them: one a process and day.';

create table read.tracker_hour (
  tracker_id uuid,
  hour timestamptz,
  sessions bigint not null,
  reveals bigint not null,
  primary key (tracker_id, hour)
);
create index tracker_hour_hour_idx on read.tracker_hour (hour);
comment on table read.tracker_hour is 'Sessions and reveals by tracker and the UTC hour they began in; outlives them. Written by projection tracker-usage.';

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
create index webhook_endpoint_partner_id_created_at_webhook_id_idx on read.webhook_endpoint (partner_id, created_at, webhook_id);
comment on table read.webhook_endpoint is 'Webhook endpoints of partners, deleted ones too: told of for 90 days. Written by projection webhooks.';
comment on column read.webhook_endpoint.tracker_id is 'null: all trackers of the partner.';
comment on column read.webhook_endpoint.secret is 'Signs deliveries. Sealed under the master key that its master_key_id names, bound to webhook_id; null once deleted.';
comment on column read.webhook_endpoint.previous_secret is 'Signs as well until secret_rotation_until.';

create table read.webhook_subscription (
  webhook_id uuid,
  partner_id uuid not null,
  tracker_id uuid,
  events text[] not null,
  from_position bigint,
  to_position bigint,
  primary key (webhook_id, from_position)
);
create index webhook_subscription_partner_id_to_position_idx on read.webhook_subscription (partner_id, to_position);
comment on table read.webhook_subscription is 'When an endpoint was enabled with which events, by log position, so that it comes out the same on a replay. Written by projection webhooks.';
comment on column read.webhook_subscription.tracker_id is 'null: all trackers of the partner.';
comment on column read.webhook_subscription.from_position is 'It takes what stands after this position and, unless null, before to_position.';

create table read.webhook_delivery (
  delivery_id uuid primary key,
  webhook_id uuid not null,
  partner_id uuid not null,
  event_id text not null,
  type text not null,
  state text not null,
  cycle integer not null,
  attempts integer not null,
  cycle_attempts integer not null,
  cycle_started_at timestamptz not null,
  stood_still_ms bigint not null,
  created_at timestamptz not null,
  "position" bigint not null,
  payload_expires_at timestamptz not null,
  last_attempt_at timestamptz,
  delivered_at timestamptz,
  next_attempt_at timestamptz,
  http_status integer,
  error text,
  constraint webhook_delivery_state_check check ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'expired'::text])))
);
create index webhook_delivery_webhook_id_next_attempt_at_idx on read.webhook_delivery (webhook_id, next_attempt_at) where (state = 'pending'::text);
create index webhook_delivery_webhook_id_state_position_idx on read.webhook_delivery (webhook_id, state, "position");
create index webhook_delivery_payload_expires_at_delivery_id_idx on read.webhook_delivery (payload_expires_at, delivery_id) where (state <> 'expired'::text);
create index webhook_delivery_recorded on read.webhook_delivery (webhook_id, (
CASE
    WHEN (cycle_attempts = 0) THEN cycle_started_at
    ELSE last_attempt_at
END)) where (state = 'pending'::text);
comment on table read.webhook_delivery is 'Events on their way to endpoints, and what became of them. Written by projection deliveries.';
comment on column read.webhook_delivery.state is 'pending of a deleted endpoint is told as cancelled, and any whose payload_expires_at has passed as expired: no row is touched for that.';
comment on column read.webhook_delivery.cycle is '1, and one more with each manual retry.';
comment on column read.webhook_delivery.attempts is 'Over all cycles.';
comment on column read.webhook_delivery.cycle_attempts is 'Of this cycle.';
comment on column read.webhook_delivery.stood_still_ms is 'For how long the endpoint had stood still in all when the cycle began.';
comment on column read.webhook_delivery."position" is 'Of its DeliveryQueued in the log: the order of the history.';
comment on column read.webhook_delivery.next_attempt_at is 'Null unless it is pending.';
comment on column read.webhook_delivery.http_status is 'Of the last attempt; null where the receiver did not answer.';
comment on column read.webhook_delivery.error is 'Why the last attempt did not succeed.';

create table read.webhook_total (
  webhook_id uuid,
  partner_id uuid not null,
  day date,
  state text,
  deliveries bigint not null,
  primary key (webhook_id, day, state)
);
create index webhook_total_partner_id_state_idx on read.webhook_total (partner_id, state);
comment on table read.webhook_total is 'How many deliveries of an endpoint are in which state, so that nobody counts rows. Written by projection deliveries.';
comment on column read.webhook_total.day is 'UTC day of their creation.';

create table read.webhook_health (
  webhook_id uuid primary key,
  partner_id uuid not null,
  pending bigint not null,
  failures_in_row integer not null,
  last_attempt_at timestamptz,
  paused_at timestamptz,
  deleted_at timestamptz,
  still_since timestamptz,
  still_ms bigint not null,
  fanned_out_to bigint,
  last_position bigint
);
create index webhook_health_partner_id_idx on read.webhook_health (partner_id);
comment on table read.webhook_health is 'Whether and how endpoints take deliveries. Written by projection deliveries.';
comment on column read.webhook_health.pending is 'Its deliveries in the state pending.';
comment on column read.webhook_health.failures_in_row is 'Attempts since the last that succeeded: from ten on its breaker holds, and one delivery at a time probes it.';
comment on column read.webhook_health.last_attempt_at is 'Start of its last attempt.';
comment on column read.webhook_health.still_since is 'Since when it is paused or held; null: it is neither. The days of its deliveries'' cycles do not run then.';
comment on column read.webhook_health.still_ms is 'For how long in all it has stood still, without the time since still_since.';
comment on column read.webhook_health.fanned_out_to is 'Greatest log position of what has been queued for it.';
comment on column read.webhook_health.last_position is 'Of the newest event of the endpoint itself, so that none is applied twice.';

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
create index webhook_payload_expires_at_event_id_idx on read.webhook_payload (expires_at, event_id);
comment on table read.webhook_payload is 'Bodies of webhook events, once for all endpoints. Written by projection payloads.';
comment on column read.webhook_payload.day is 'UTC day whose key sealed the body.';
comment on column read.webhook_payload.bytes is 'Length of the body.';

create table read.webhook_retained (
  partner_id uuid,
  day date,
  bytes bigint not null,
  primary key (partner_id, day)
);
comment on table read.webhook_retained is 'How much of bodies is kept. Written by projection payloads.';
comment on column read.webhook_retained.day is 'UTC day on which they expire.';

create table read.domain (
  domain_id uuid primary key,
  hostname text not null,
  tracker_id uuid not null,
  partner_id uuid not null,
  status text not null,
  created_at timestamptz not null,
  activated_at timestamptz,
  last_error text
);
create index domain_tracker_id_created_at_domain_id_idx on read.domain (tracker_id, created_at, domain_id);
create unique index domain_active_hostname on read.domain (hostname) where (status = 'active'::text);
create index domain_hostname on read.domain (hostname);
create index domain_partner on read.domain (partner_id);
comment on table read.domain is 'Claims of host names by trackers; one that was given up has no row. Written by projection domains.';
comment on column read.domain.status is 'pending, active (it collects for its tracker) or failed.';
comment on column read.domain.activated_at is 'When it last became active; null once its activation has begun anew.';
comment on column read.domain.last_error is 'Why it does not point at the service, as of the last look that told something new; null: it does, or nobody has looked.';

create table read.signal (
  event_id text primary key,
  batch uuid not null,
  day date not null,
  visitor text,
  domain text,
  site text,
  page_run text,
  submitted boolean,
  occurred_at timestamptz,
  sealed bytea
);
create index signal_visitor_occurred_at_idx on read.signal (visitor, occurred_at) where (visitor IS NOT NULL);
create index signal_day_idx on read.signal (day);
comment on table read.signal is 'Clues about companies, each once, for 30 days. Written by projection signals.';
comment on column read.signal.event_id is 'As the sender named it. Of a clue that is left out nothing else is known.';
comment on column read.signal.batch is 'Id of the event that it came with first.';
comment on column read.signal.day is 'UTC day that it came on: the stream signals-<day> tells of it.';
comment on column read.signal.visitor is 'Keyed digest of the address, under the key of the day.';
comment on column read.signal.domain is 'Keyed digest of the e-mail domain.';
comment on column read.signal.site is 'Keyed digest of website and installation.';
comment on column read.signal.page_run is 'Keyed digest of the page run; null: none was recorded.';
comment on column read.signal.submitted is 'Whether a submit was seen; else an e-mail field was.';
comment on column read.signal.sealed is 'The e-mail domain, sealed under the key of the day.';

create table read.signal_day (
  day date primary key,
  last_revision integer not null,
  last_position bigint not null
);
comment on table read.signal_day is 'The days that there are clues of. Written by projection signals.';
comment on column read.signal_day.last_revision is 'Of the last event in the stream signals-<day>.';
comment on column read.signal_day.last_position is 'The same event''s place in the log.';

create table read.company_profile (
  ip text primary key,
  hostname text not null,
  profile text not null,
  enriched_at timestamptz not null
);
create index company_profile_hostname_profile_enriched_at_idx on read.company_profile (hostname, profile DESC, enriched_at DESC);
comment on table read.company_profile is 'Websites of companies in saved results: what clues are matched with. Written by projection profiles.';
comment on column read.company_profile.hostname is 'Of the website, lower case, without www.';
comment on column read.company_profile.profile is 'What the company is called, in lower case: addresses of one company are one profile. Empty: nothing.';

create table read.webhook_attempt_hour (
  webhook_id uuid,
  partner_id uuid not null,
  day date,
  hour timestamptz,
  outcome text,
  http_status integer,
  attempts bigint not null,
  duration_ms bigint not null,
  primary key (webhook_id, day, hour, outcome, http_status)
);
create index webhook_attempt_hour_hour_idx on read.webhook_attempt_hour (hour);
comment on table read.webhook_attempt_hour is 'Attempts at deliveries by endpoint, UTC hour and outcome. Written by projection deliveries.';
comment on column read.webhook_attempt_hour.day is 'UTC day of the deliveries'' creation: with them they are forgotten.';
comment on column read.webhook_attempt_hour.hour is 'In which they began.';
comment on column read.webhook_attempt_hour.outcome is 'delivered, or why not, as in webhook_delivery.error.';
comment on column read.webhook_attempt_hour.http_status is '0: the receiver did not answer.';
comment on column read.webhook_attempt_hour.duration_ms is 'Sum of their durations, milliseconds.';

create table read.user_account (
  user_id uuid primary key,
  partner_id uuid not null,
  name text not null,
  created_at timestamptz not null,
  removed_at timestamptz
);
create index user_account_partner_id_idx on read.user_account (partner_id);
comment on table read.user_account is 'Users of the dashboard, by the id that their name makes. Written by projection partners.';
comment on column read.user_account.removed_at is 'From then on the user logs in no more; the name is not given again.';

create table read.domain_owner (
  hostname text,
  partner_id uuid,
  primary key (hostname, partner_id)
);
comment on table read.domain_owner is 'Partners for which a host name was ever active: another partner has to show by a TXT record that it is its own. Written by projection domains.';

create table read.forgotten_lookup (
  stream text primary key,
  last_revision integer not null,
  last_position bigint not null
);
comment on table read.forgotten_lookup is 'Streams of results that were forgotten, until they are deleted. Written by projection lookups.';
comment on column read.forgotten_lookup.stream is 'The name holds a keyed digest of the address.';
comment on column read.forgotten_lookup.last_revision is 'Of its last event.';
comment on column read.forgotten_lookup.last_position is 'The place of its last event in the log: it is deleted once everybody has passed that.';

create table work.processor (
  name text primary key,
  "position" bigint,
  stopped_by text
);
comment on table work.processor is 'How far each event-following processor has come.';

create table work.claim (
  item text,
  cycle integer,
  attempt integer,
  lease_until timestamptz not null,
  primary key (item, cycle, attempt)
);
create index claim_lease_until_idx on work.claim (lease_until);
comment on table work.claim is 'Who attempts what: held until the attempt''s outcome is projected or the lease ends.';

create table work.keyring (
  name text primary key,
  master_key_id text not null,
  sealed bytea not null
);
comment on table work.keyring is 'Keys of the service, sealed under the master key. Back it up with the event store.';

create table work.process (
  process_id uuid primary key,
  role text not null,
  seen_at timestamptz not null,
  beats bigint default 0 not null,
  release text
);
comment on table work.process is 'Processes that are alive, by their own heartbeat.';
comment on column work.process.seen_at is 'The last heartbeat, by the clock of the process.';
comment on column work.process.beats is 'Counts the heartbeats. Others watch it by their own monotonic clock: a count that stands still is a process that is gone.';
comment on column work.process.release is 'Of the program that it runs; null: one before 0.2.0.';

create unlogged table work.rate (
  name text primary key,
  slot bigint not null,
  used integer[] not null
);
comment on table work.rate is 'Admissions in the last eleven tenths of each limit''s window.';

create table work.awaited_result (
  reveal_id uuid primary key,
  session_id uuid not null,
  partner_id uuid not null,
  address_digest text not null,
  asked boolean not null,
  expires_at timestamptz not null,
  ready boolean default false not null
);
create index awaited_result_address_digest_idx on work.awaited_result (address_digest);
create index awaited_result_expires_at_idx on work.awaited_result (expires_at);
create index awaited_result_partner_id_idx on work.awaited_result (partner_id) where ready;
create index awaited_result_left on work.awaited_result (partner_id, reveal_id) where (NOT asked);
comment on table work.awaited_result is 'Pending reveals, and the address that each waits for. Written by processors enrich-reveals and complete-reveals.';
comment on column work.awaited_result.address_digest is 'Keyed digest, as in the name of the address''s enrichment stream.';
comment on column work.awaited_result.asked is 'False where the shared intake was full: the work is still to be asked for.';
comment on column work.awaited_result.ready is 'The result is there, and the reveal still pending: nobody subscribed to it, or the queue of deliveries was full.';

create unlogged table work.delivery_claim (
  delivery_id uuid,
  cycle integer,
  attempt integer,
  webhook_id uuid not null,
  holder uuid not null,
  running boolean not null,
  lease_until timestamptz not null,
  primary key (delivery_id, cycle, attempt)
);
create index delivery_claim_webhook_id_idx on work.delivery_claim (webhook_id) where running;
create index delivery_claim_lease_until_idx on work.delivery_claim (lease_until);
comment on table work.delivery_claim is 'Who attempts which delivery: held until the outcome is projected or the lease ends.';
comment on column work.delivery_claim.holder is 'The worker.';
comment on column work.delivery_claim.running is 'It takes one of the endpoint''s places: its attempt has not ended.';

create unlogged table work.webhook_slot (
  webhook_id uuid primary key,
  paid_until_ms double precision not null,
  failures_in_row integer not null,
  started_at timestamptz
);
comment on table work.webhook_slot is 'What holds over all workers of an endpoint. Its row is locked by whoever claims.';
comment on column work.webhook_slot.paid_until_ms is 'Each start moves it on by its share of a second (GCRA). Milliseconds since the epoch.';
comment on column work.webhook_slot.failures_in_row is 'As in read.webhook_health, and sooner: attempts that have ended and are not projected yet count.';
comment on column work.webhook_slot.started_at is 'When the last attempt was claimed.';

create table work.domain_look (
  domain_id uuid primary key,
  hostname text not null,
  looks integer default 0 not null,
  looked_at timestamptz,
  due_at timestamptz,
  recorded_at timestamptz,
  partner_id uuid
);
create index domain_look_due_at_idx on work.domain_look (due_at);
create index domain_look_recorded_at_idx on work.domain_look (recorded_at);
comment on table work.domain_look is 'When to look where a custom domain points. Made by processor keep-domains; the rest by the looks themselves, most of which have no event.';
comment on column work.domain_look.looks is 'How many have ended; the claim of the next one has the number after it.';
comment on column work.domain_look.due_at is 'null: its activation has failed, and nobody looks.';
comment on column work.domain_look.recorded_at is 'When due_at was recorded.';
comment on column work.domain_look.partner_id is 'Whose name it is: a partner has at most two checks under way.';

create table work.user_password (
  user_id uuid primary key,
  hash text not null,
  is_first boolean not null,
  set_at timestamptz not null
);
comment on table work.user_password is 'What users of the dashboard log in with. No event has it: a rebuild brings none of it back.';
comment on column work.user_password.hash is 'argon2id, as a PHC string.';
comment on column work.user_password.is_first is 'Given by an operator: its user must change it before anything else.';

create table work.login (
  digest bytea primary key,
  user_id uuid not null,
  began_at timestamptz not null,
  used_at timestamptz not null
);
create index login_user_id_idx on work.login (user_id);
comment on table work.login is 'Who is logged in to the dashboard.';
comment on column work.login.digest is 'SHA-256 of the token in the cookie.';
comment on column work.login.used_at is 'Of the last request, give or take a minute.';

create table work.key_use (
  key_id text primary key,
  used_at timestamptz not null
);
comment on table work.key_use is 'When each API key was last seen on a request, give or take some seconds.';

create table work.audit_verdict (
  partner_id uuid primary key,
  began_at timestamptz not null,
  ended_at timestamptz,
  report json
);
comment on table work.audit_verdict is 'What the last audit of a partner''s ledger found that was asked for in the dashboard.';
comment on column work.audit_verdict.ended_at is 'Null: it runs, or its process has ended.';
comment on column work.audit_verdict.report is 'As doorplate audit billing prints it; null where it came to no end.';

create table work.lease (
  name text primary key,
  number bigint not null,
  process_id uuid
);
comment on table work.lease is 'Which process runs which group of projections and processors.';
comment on column work.lease.number is 'Fencing token: rises with each new holder. Checkpoints are written under it.';
comment on column work.lease.process_id is 'The holder; null where it gave the lease back.';

create table work.login_network (
  user_id uuid,
  network text,
  used_at timestamptz not null,
  primary key (user_id, network)
);
comment on table work.login_network is 'Networks of logins that succeeded, for 90 days. Written by the login.';
comment on column work.login_network.network is 'A keyed digest of the IPv4 address or IPv6 /64.';

create table work.only_one_rebuild ();
comment on table work.only_one_rebuild is 'Empty; locked by the rebuild that runs.';

create table work.only_one_rotation ();
comment on table work.only_one_rotation is 'Empty; locked by the change of the master key that runs.';

create table work.only_one_grant ();
comment on table work.only_one_grant is 'Empty; locked while roles of analysts are changed.';

create table work.enrichment_truncation (
  ip text primary key
);
comment on table work.enrichment_truncation is 'Addresses whose enrichment stream is being replaced by a snapshot. A row that stays is from a process that died meanwhile; the next run ends its work. Written by snapshot-enrichments.';

create table work.lookup_use (
  ip text primary key,
  asked_on date not null
);
create index lookup_use_asked_on_idx on work.lookup_use (asked_on);
comment on table work.lookup_use is 'When each saved result was last asked for, by a lookup or a reveal.';
comment on column work.lookup_use.asked_on is 'The UTC day.';

create unlogged table work.kept_out (
  rate text,
  asker text,
  kept_out_at timestamptz not null,
  primary key (rate, asker)
);
comment on table work.kept_out is 'For whom a shared rate was full lately. Written by platform/kept-out.ts.';
comment on column work.kept_out.rate is 'Names the rate.';
comment on column work.kept_out.asker is 'A partner, or its reveals.';
comment on column work.kept_out.kept_out_at is 'When it was full last.';

create table work.expiring (
  kind text,
  id text,
  partner_id uuid not null,
  expires_at timestamptz not null,
  primary key (kind, id)
);
comment on table work.expiring is 'Sessions, receipts and bodies whose streams a sweep is deleting. A row that stays is from a sweep that was cut off; the next one ends its work. Written by the sweeps of processors/expiry.ts.';
comment on column work.expiring.kind is 'sessions, reveals or payloads.';

insert into eventlog.writer default values;

create function eventlog.lock_writer() returns boolean language plpgsql as $$
begin
  perform from eventlog.writer for update;
  if not found then raise exception 'eventlog.writer has no row: nothing would keep two writers apart'; end if;
  return true;
end $$;
comment on function eventlog.lock_writer() is 'Waits until no other transaction appends, and keeps all others waiting.';

-- Appends a group of appends of one process in one transaction. The writers' row is locked before any
-- head is read and held until commit, so positions become visible in their own order and a cursor that
-- knows the last position alone never misses an event. Every statement of the function has a snapshot of its own, so
-- what is read after the lock is what the writer before has committed.
-- Expected: a revision, -1 no stream, -2 any, -4 stream exists.
create function eventlog.append_batch(
  streams text[], expected integer[], counts integer[],
  ids uuid[], types text[], datas json[], metadatas json[]
) returns table (outcome text, revision integer, "position" bigint)
language plpgsql
-- Without it every call plans its statements anew, which costs more than running them.
set plan_cache_mode = force_generic_plan
-- As since 0010.
set enable_seqscan = off
as $$
declare
  head eventlog.stream;
  present boolean;
  first integer := 1;
  last integer;
  at integer;
  repeated record;
begin
  perform eventlog.lock_writer();
  for i in 1 .. cardinality(streams) loop
    last := first + counts[i] - 1;
    select s.* into head from eventlog.stream s where s.name = streams[i];
    present := found;
    at := case when present then head.revision else -1 end;
    position := null;

    select min(e.revision) as lowest, max(e.revision) as highest, max(e.position) as top,
           count(*) as n, count(*) filter (where e.stream = streams[i]) as own
      into repeated
      from eventlog.event e where e.id = any (ids[first:last]);

    if present and head.expired then
      outcome := 'expired';
      revision := at;
    elsif repeated.n > 0 then
      if repeated.own = counts[i] and repeated.highest - repeated.lowest + 1 = counts[i]
         and (expected[i] = repeated.lowest - 1 or expected[i] < -1) then
        outcome := 'appended';
        revision := repeated.highest;
        position := repeated.top;
      else
        outcome := 'conflict';
        revision := at;
      end if;
    elsif (expected[i] >= -1 and expected[i] <> at) or (expected[i] = -4 and at < 0) then
      outcome := 'conflict';
      revision := at;
    else
      with inserted as (
        insert into eventlog.event (stream, revision, id, type, data, metadata)
        select streams[i], at + o, ids[first + o - 1], types[first + o - 1],
               datas[first + o - 1], metadatas[first + o - 1]
        from generate_series(1, counts[i]) o order by o
        returning eventlog.event.position as p
      )
      select max(p) into position from inserted;
      revision := at + counts[i];
      outcome := 'appended';
      if present then
        update eventlog.stream s set revision = at + counts[i] where s.name = streams[i];
      else
        insert into eventlog.stream (name, revision) values (streams[i], at + counts[i]);
      end if;
    end if;
    first := last + 1;
    return next;
  end loop;
end $$;

create function work.take_rate(
  rate_name text, ceiling integer, window_ms bigint, wanted integer, at_ms bigint, unused integer, unused_slot bigint
) returns table (granted integer, granted_slot bigint, retry_ms bigint, was_ahead boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  width bigint := greatest(1, window_ms / 10);
  now_slot bigint := at_ms / width;
  held work.rate;
  shift bigint;
  place bigint;
  first integer := case when window_ms > 1000 then 2 else 1 end;
  total integer := 0;
begin
  insert into work.rate (name, slot, used) values (rate_name, now_slot, array_fill(0, array[11]))
    on conflict (name) do nothing;
  select * into held from work.rate where name = rate_name for update;
  -- Slots that lie further ahead than a minute are a wrong clock's: they count as if they were now's.
  was_ahead := held.slot * width > at_ms + 60000;
  if was_ahead then held.slot := now_slot; end if;
  -- A clock that is behind by less counts into the newest slot.
  now_slot := greatest(now_slot, held.slot);
  shift := now_slot - held.slot;
  if shift >= 11 then
    held.used := array_fill(0, array[11]);
  elsif shift > 0 then
    held.used := held.used[shift + 1 : 11] || array_fill(0, array[shift::integer]);
  end if;
  place := 11 - (now_slot - unused_slot);
  if unused > 0 and place between 1 and 11 then
    held.used[place] := greatest(0, held.used[place] - unused);
  end if;
  for i in first .. 11 loop total := total + held.used[i]; end loop;
  granted := greatest(0, least(wanted, ceiling - total));
  granted_slot := now_slot;
  retry_ms := 0;
  if granted = 0 then
    retry_ms := window_ms;
    for i in first .. 11 loop
      if held.used[i] > 0 then
        retry_ms := (now_slot + i + 1 - first) * width - at_ms;
        exit;
      end if;
    end loop;
  end if;
  held.used[11] := held.used[11] + granted;
  update work.rate set slot = now_slot, used = held.used where name = rate_name;
  return next;
end $$;
comment on function work.take_rate is 'Grants admissions under a rate that holds over all processes.';

-- Called by processes of 0.2.0 alone.
-- As before, and what lies ahead is taken as due: each such claim says so by "ahead".
create function work.claim_deliveries(
  holder_id uuid, webhook_ids uuid[], wanted integer[], at timestamptz, lease_until timestamptz, projections text[],
  concurrency integer, starts_per_second double precision, held_after integer, probe_ms double precision
) returns table (webhook_id uuid, claims json, again_at timestamptz)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  slot work.webhook_slot;
  health read.webhook_health;
  applied bigint;
  at_ms double precision := extract(epoch from at) * 1000;
  -- A tenth of a second's starts may come at once. They are taken off the rest, so that no second has more than it may.
  burst double precision := greatest(1, floor(starts_per_second / 10));
  cost double precision := 1000 / greatest(starts_per_second - burst, starts_per_second * 0.9);
  ahead double precision := (burst - 1) * cost;
  retry interval := interval '25 milliseconds';
  running integer;
  room integer;
  most integer;
  last timestamptz;
  claimed integer;
  -- What is recorded later than this was recorded by a clock that was ahead, and counts as now.
  ahead_after timestamptz := at + interval '1 minute';
  lease_ahead_after timestamptz := lease_until + interval '1 minute';
  slot_ahead boolean;
begin
  select case when count(p.position) = cardinality(projections) then min(p.position) end into applied
  from read.projection p where p.name = any (projections);

  -- In one order, so that two who meet at new endpoints wait for each other one way round.
  insert into work.webhook_slot (webhook_id, paid_until_ms, failures_in_row)
    select w.id, 0, 0 from unnest(webhook_ids) as w (id)
    where not exists (select from work.webhook_slot s where s.webhook_id = w.id)
    order by w.id
    on conflict do nothing;

  for i in 1 .. cardinality(webhook_ids) loop
    webhook_id := webhook_ids[i];
    claims := '[]';
    again_at := null;
    select * into slot from work.webhook_slot s where s.webhook_id = webhook_ids[i] for update skip locked;
    if not found then
      again_at := at + retry;
      return next;
      continue;
    end if;
    select * into health from read.webhook_health h where h.webhook_id = webhook_ids[i];
    if not found or health.paused_at is not null or health.deleted_at is not null or health.pending = 0 then
      return next;
      continue;
    end if;

    select count(*) into running from work.delivery_claim c
    where c.webhook_id = webhook_ids[i] and c.running and c.lease_until > at
      and c.lease_until <= lease_ahead_after;
    slot_ahead := coalesce(slot.started_at > ahead_after, false) or slot.paid_until_ms > extract(epoch from ahead_after) * 1000;
    room := wanted[i];
    if greatest(slot.failures_in_row, health.failures_in_row) >= held_after then
      select max(t) into last from unnest(array[slot.started_at, health.last_attempt_at]) t where t <= ahead_after;
      if last + probe_ms * interval '1 millisecond' > at then
        room := 0;
        again_at := last + probe_ms * interval '1 millisecond';
      elsif running > 0 then
        room := 0;
        again_at := at + retry * 10;
      else
        room := least(room, 1);
      end if;
    elsif running >= concurrency then
      room := 0;
      again_at := at + retry;
    else
      room := least(room, concurrency - running);
    end if;
    slot.paid_until_ms := case when slot_ahead then at_ms else greatest(slot.paid_until_ms, at_ms) end;
    -- A little more, as fractions add up to a little less.
    most := floor(greatest(-1, least((at_ms + ahead - slot.paid_until_ms) / cost + 1e-6, 1e6)))::integer + 1;
    if room > 0 and most < 1 then
      room := 0;
      again_at := at + (slot.paid_until_ms - ahead - at_ms) * interval '1 millisecond';
    end if;
    room := least(room, most);
    if room < 1 then
      return next;
      continue;
    end if;

    with candidate as materialized (
      (select d.*, false as ahead from read.webhook_delivery d
       where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at <= at
         and d.position <= applied and d.payload_expires_at > at
         and not exists (
           select from work.delivery_claim c
           where c.delivery_id = d.delivery_id and c.cycle = d.cycle and c.attempt = d.cycle_attempts + 1
             and c.lease_until > at and c.lease_until <= lease_ahead_after)
       order by d.next_attempt_at
       limit room)
      union all
      (select d.*, true as ahead from read.webhook_delivery d
       where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at > at
         and case when d.cycle_attempts = 0 then d.cycle_started_at else d.last_attempt_at end > ahead_after
         and d.position <= applied and d.payload_expires_at > at
         and not exists (
           select from work.delivery_claim c
           where c.delivery_id = d.delivery_id and c.cycle = d.cycle and c.attempt = d.cycle_attempts + 1
             and c.lease_until > at and c.lease_until <= lease_ahead_after)
       limit room)),
    due as materialized (
      select d.delivery_id, d.cycle, d.cycle_attempts + 1 as attempt, d.event_id, d.type, d.partner_id, d.created_at,
             -- What stood still by a wrong clock is not taken off twice, and not put on.
             greatest(0, extract(epoch from at - d.cycle_started_at) * 1000
               - (health.still_ms - d.stood_still_ms)
               - greatest(0, coalesce(extract(epoch from at - health.still_since) * 1000, 0))) as ran_ms,
             d.ahead or slot_ahead as ahead
      from candidate d
      order by d.next_attempt_at
      limit room),
    held as (
      insert into work.delivery_claim as c (delivery_id, cycle, attempt, webhook_id, holder, running, lease_until)
      select delivery_id, cycle, attempt, webhook_ids[i], holder_id, true, claim_deliveries.lease_until from due
      on conflict (delivery_id, cycle, attempt) do update
        set holder = excluded.holder, running = true, lease_until = excluded.lease_until
        where c.lease_until <= at or c.lease_until > lease_ahead_after
      returning c.delivery_id)
    select coalesce(json_agg(due), '[]'), count(*) into claims, claimed from due join held using (delivery_id);

    if claimed > 0 then
      update work.webhook_slot s
      set paid_until_ms = slot.paid_until_ms + claimed * cost, started_at = at
      where s.webhook_id = webhook_ids[i];
    end if;
    if claimed = room then
      again_at := at;
    else
      select min(d.next_attempt_at) into again_at from read.webhook_delivery d
      where d.webhook_id = webhook_ids[i] and d.state = 'pending' and d.next_attempt_at > at;
    end if;
    return next;
  end loop;
end $$;

-- Attempts of one worker have ended: their places are free, and the endpoints' failures are counted, in the order given.
-- `succeeded` is null where an attempt came to nothing.
create function work.end_attempts(
  holder_id uuid, delivery_ids uuid[], cycles integer[], attempts integer[], webhook_ids uuid[], succeeded boolean[]
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  update work.delivery_claim c set running = false
  from unnest(delivery_ids, cycles, attempts) as e (delivery_id, cycle, attempt)
  where c.delivery_id = e.delivery_id and c.cycle = e.cycle and c.attempt = e.attempt and c.holder = holder_id;

  perform from work.webhook_slot s where s.webhook_id = any (webhook_ids) order by s.webhook_id for update;
  update work.webhook_slot s
  set failures_in_row = e.failed + case when e.succeeded_at is null then s.failures_in_row else 0 end
  from (
    select o.webhook_id, max(o.succeeded_at) as succeeded_at,
           count(*) filter (where not o.success and o.n > coalesce(o.succeeded_at, 0)) as failed
    from (
      select u.webhook_id, u.success, u.n, max(u.n) filter (where u.success) over (partition by u.webhook_id) as succeeded_at
      from unnest(webhook_ids, succeeded) with ordinality as u (webhook_id, success, n)
      where u.success is not null) o
    group by o.webhook_id) e
  where s.webhook_id = e.webhook_id;
end $$;

-- A role's own statement_timeout is a default that it may change. Every view asks this, once a statement, so that nobody
-- but the schema's owner reads without an end in sight (docs/adr/0013).
create function analytics.time_is_limited() returns boolean
language plpgsql stable parallel safe
as $$
declare
  own interval := current_setting('statement_timeout')::interval;
begin
  if own > interval '0' and own <= interval '10 minutes' then return true; end if;
  if pg_has_role(current_user, (select nspowner from pg_namespace where nspname = 'analytics'), 'member') then
    return true;
  end if;
  raise exception 'statement_timeout must be between 1 millisecond and 10 minutes to read analytics, and is %',
      current_setting('statement_timeout')
    using errcode = 'object_not_in_prerequisite_state',
          hint = 'For example: set statement_timeout = ''5min''. What takes longer is a case for "doorplate export".';
end $$;
comment on function analytics.time_is_limited() is
  'True, or an error where the statement''s time is not limited to ten minutes; the schema''s owner is not limited.';
revoke execute on function analytics.time_is_limited() from public;

-- A rebuild of a projection puts new tables in the place of old ones and re-creates these views over them by CREATE OR
-- REPLACE, which keeps grants and comments. A view's first time is what "doorplate export --from --to" bounds.

create view analytics.partners as
select partner_id, name, created_at
from read.partner where analytics.time_is_limited();
comment on view analytics.partners is 'Partner accounts.';
comment on column analytics.partners.partner_id is 'Names the partner in all other views.';
comment on column analytics.partners.name is 'As the operator named it.';
comment on column analytics.partners.created_at is 'When the account was made.';

create view analytics.api_keys as
select key_id, partner_id, name, created_at, expires_at, revoked_at, requests_per_second, new_enrichments_per_day,
       pending_enrichments, company_signals
from read.api_key where analytics.time_is_limited();
comment on view analytics.api_keys is 'API keys and their limits, without anything that could stand for the key.';
comment on column analytics.api_keys.key_id is 'Names the key in all other views. It opens nothing.';
comment on column analytics.api_keys.partner_id is 'Whose it is.';
comment on column analytics.api_keys.name is 'As the partner or the operator named it.';
comment on column analytics.api_keys.created_at is 'When it was made.';
comment on column analytics.api_keys.expires_at is 'From then on it opens nothing; null: never.';
comment on column analytics.api_keys.revoked_at is 'When it was revoked; null: it was not.';
comment on column analytics.api_keys.requests_per_second is 'Most requests a second.';
comment on column analytics.api_keys.new_enrichments_per_day is 'Most new enrichments in a UTC day; null: no cap; 0: saved addresses only.';
comment on column analytics.api_keys.pending_enrichments is 'Most enrichments under way at once.';
comment on column analytics.api_keys.company_signals is 'Whether its lookup answers carry company signals.';

create view analytics.trackers as
select tracker_id, partner_id, name, array_to_string(origins, ' ') as origins, created_at, disabled_at, deleted_at
from read.tracker where analytics.time_is_limited();
comment on view analytics.trackers is 'Trackers (pixels) of partners, deleted ones too.';
comment on column analytics.trackers.tracker_id is 'Names the tracker in all other views.';
comment on column analytics.trackers.partner_id is 'Whose it is.';
comment on column analytics.trackers.name is 'As the partner named it.';
comment on column analytics.trackers.origins is 'Websites that it may run on, separated by spaces: origins, or https://*.host.';
comment on column analytics.trackers.created_at is 'When it was made.';
comment on column analytics.trackers.disabled_at is 'Since when it takes no visits; null: it is enabled.';
comment on column analytics.trackers.deleted_at is 'When it was deleted; null: it was not.';

create view analytics.domains as
select domain_id, tracker_id, partner_id, hostname, status, created_at, activated_at, last_error
from read.domain where analytics.time_is_limited();
comment on view analytics.domains is 'Custom host names that trackers have now.';
comment on column analytics.domains.domain_id is 'Names the domain.';
comment on column analytics.domains.tracker_id is 'The tracker that it collects for.';
comment on column analytics.domains.partner_id is 'Whose it is.';
comment on column analytics.domains.hostname is 'The host name, lower case.';
comment on column analytics.domains.status is 'pending, active or failed.';
comment on column analytics.domains.created_at is 'When it was claimed.';
comment on column analytics.domains.activated_at is 'When it last became active; null: it is not.';
comment on column analytics.domains.last_error is 'Why it does not point at the service; null: it does, or nobody has looked.';

create view analytics.lookups as
select enriched_at, fresh_until, match_type, needs_company_enrichment, array_to_string(sources, ' ') as sources,
       company ->> 'name' as company_name, company ->> 'website' as company_website, company ->> 'industry' as industry,
       company ->> 'industry_subcategory' as industry_subcategory, company ->> 'naics_code' as naics_code,
       company ->> 'sic_code' as sic_code, company ->> 'employees' as employees,
       company ->> 'annual_revenue' as annual_revenue, company ->> 'revenue_band' as revenue_band,
       company ->> 'city' as city, company ->> 'region' as region, company ->> 'country_code' as country_code,
       network ->> 'connection_type' as connection_type, network ->> 'audience_type' as audience_type,
       network ->> 'audience_group' as audience_group, network ->> 'detail_level' as detail_level,
       (network ->> 'is_isp')::boolean as is_isp
from read.saved_lookup where analytics.time_is_limited();
comment on view analytics.lookups is 'Saved lookup results, a row for each address, without the address. They are shared by all partners.';
comment on column analytics.lookups.enriched_at is 'When this was found out: in full on the same day, later the UTC day alone.';
comment on column analytics.lookups.fresh_until is 'From then on it is stale, and served until it is refreshed: in full on the day that it was found out, later the UTC day alone.';
comment on column analytics.lookups.match_type is 'company, isp or unclassified.';
comment on column analytics.lookups.needs_company_enrichment is 'Some provider could not contribute: the next POST requests the rest.';
comment on column analytics.lookups.sources is 'Providers whose answers stand in it, in the chain''s order, separated by spaces.';
comment on column analytics.lookups.company_name is 'Null, here and in the other fields of company and network: unknown.';
comment on column analytics.lookups.company_website is 'The company''s website.';
comment on column analytics.lookups.industry is 'The company''s industry.';
comment on column analytics.lookups.industry_subcategory is 'A finer division of the industry.';
comment on column analytics.lookups.naics_code is 'Industry by NAICS.';
comment on column analytics.lookups.sic_code is 'Industry by SIC.';
comment on column analytics.lookups.employees is 'A number or a range, as the provider tells it.';
comment on column analytics.lookups.annual_revenue is 'A number or a range, as the provider tells it.';
comment on column analytics.lookups.revenue_band is 'The range that the revenue is in.';
comment on column analytics.lookups.city is 'Of the company, not of a visitor.';
comment on column analytics.lookups.region is 'Of the company.';
comment on column analytics.lookups.country_code is 'Of the company, ISO 3166-1 alpha-2.';
comment on column analytics.lookups.connection_type is 'Of the network.';
comment on column analytics.lookups.audience_type is 'Of the network.';
comment on column analytics.lookups.audience_group is 'Of the network.';
comment on column analytics.lookups.detail_level is 'Of the network.';
comment on column analytics.lookups.is_isp is 'Whether the network is an internet provider''s.';

create view analytics.reservations as
select reservation_id, partner_id, key_id, kind, state, made_at, ended_at
from read.reservation where analytics.time_is_limited();
comment on view analytics.reservations is 'What partners asked to be enriched, against allowance and pending limit, without the addresses.';
comment on column analytics.reservations.reservation_id is 'Names the reservation.';
comment on column analytics.reservations.partner_id is 'Who asked.';
comment on column analytics.reservations.key_id is 'With which key.';
comment on column analytics.reservations.kind is 'first: nothing was saved. refresh: it was stale. completion: some provider had not contributed.';
comment on column analytics.reservations.state is 'reserved: not yet submitted. submitted: under way. completed, gave_up: as its enrichment ended. settled: ended without one.';
comment on column analytics.reservations.made_at is 'When it was asked.';
comment on column analytics.reservations.ended_at is 'When it no longer counted as pending; null: it still does.';

create view analytics.usage_hours as
select u.hour, k.partner_id, u.key_id, u.outcome, sum(u.requests)::bigint as requests,
       sum(u.cache_hits)::bigint as cache_hits, sum(u.duration_us)::bigint as duration_us
from read.usage_hour u left join read.api_key k on k.key_id = u.key_id
where analytics.time_is_limited()
group by u.hour, k.partner_id, u.key_id, u.outcome;
comment on view analytics.usage_hours is 'Lookup answers by UTC hour, key and outcome, for 400 days.';
comment on column analytics.usage_hours.hour is 'Start of the hour in which they were answered.';
comment on column analytics.usage_hours.partner_id is 'Whose key it is.';
comment on column analytics.usage_hours.key_id is 'The key that asked.';
comment on column analytics.usage_hours.outcome is 'company, isp, unclassified, enqueued, pending, retrying, invalid_request, rate_limited or error.';
comment on column analytics.usage_hours.requests is 'How many.';
comment on column analytics.usage_hours.cache_hits is 'How many of them a saved result answered.';
comment on column analytics.usage_hours.duration_us is 'Sum of their processing times, microseconds: divide by requests for the mean.';

create view analytics.tracker_hours as
select c.hour, t.partner_id, c.tracker_id, sum(c.capture_requests)::bigint as capture_requests,
       sum(c.api_requests)::bigint as api_requests, sum(c.completed_responses)::bigint as completed_responses,
       sum(c.company_responses)::bigint as company_responses, sum(c.sessions)::bigint as sessions,
       sum(c.reveals)::bigint as reveals
from (
  select tracker_id, hour, capture_requests, api_requests, completed_responses, company_responses,
         0::bigint as sessions, 0::bigint as reveals
  from read.tracker_calls_hour
  union all
  select tracker_id, hour, 0, 0, 0, 0, sessions, reveals from read.tracker_hour
) c left join read.tracker t on t.tracker_id = c.tracker_id
where analytics.time_is_limited()
group by c.hour, t.partner_id, c.tracker_id;
comment on view analytics.tracker_hours is 'What happened with trackers by UTC hour, for 400 days: it outlives sessions and reveals.';
comment on column analytics.tracker_hours.hour is 'Start of the hour.';
comment on column analytics.tracker_hours.partner_id is 'Whose tracker it is.';
comment on column analytics.tracker_hours.tracker_id is 'The tracker.';
comment on column analytics.tracker_hours.capture_requests is 'Requests of its pixel, those of crawlers and prefetches too.';
comment on column analytics.tracker_hours.api_requests is 'Previews, filtered feed pages, reveals and receipts that partners read with success.';
comment on column analytics.tracker_hours.completed_responses is 'Those of them with a complete result.';
comment on column analytics.tracker_hours.company_responses is 'Those of them that told a company.';
comment on column analytics.tracker_hours.sessions is 'Sessions that began in the hour.';
comment on column analytics.tracker_hours.reveals is 'Reveals that were asked for in the hour.';

create view analytics.sessions as
select session_id, tracker_id, partner_id, first_seen_at, last_seen_at, expires_at, visitor_country
from read.session where analytics.time_is_limited();
comment on view analytics.sessions is 'Visits to websites with a tracker, for 30 days, without address and labels.';
comment on column analytics.sessions.session_id is 'Names the session.';
comment on column analytics.sessions.tracker_id is 'The tracker that saw it.';
comment on column analytics.sessions.partner_id is 'Whose tracker that is.';
comment on column analytics.sessions.first_seen_at is 'Its first page view.';
comment on column analytics.sessions.last_seen_at is 'Its last page view so far.';
comment on column analytics.sessions.expires_at is 'From then on the API hides it; its row goes within moments, with the next sweep.';
comment on column analytics.sessions.visitor_country is 'ISO 3166-1 alpha-2, estimated from the address (IP geolocation by DB-IP); null: unknown.';

create view analytics.reveals as
select reveal_id, session_id, tracker_id, partner_id, key_id, case when key_id is null then 'user' else 'key' end as asked_by,
       created_at, completed_at, expires_at, billable, result ->> 'match_type' as match_type,
       (result ->> 'company_found')::boolean as company_found, (result ->> 'stale')::boolean as stale,
       result -> 'company' ->> 'name' as company_name, result -> 'company' ->> 'website' as company_website,
       result -> 'company' ->> 'industry' as industry, result -> 'company' ->> 'country_code' as country_code,
       result -> 'company' ->> 'employees' as employees, result -> 'company' ->> 'revenue_band' as revenue_band
from read.reveal where analytics.time_is_limited();
comment on view analytics.reveals is 'Reveals as long as their receipts are kept: 30 days from their session''s beginning. What was billed for longer is in units.';
comment on column analytics.reveals.reveal_id is 'Names the reveal.';
comment on column analytics.reveals.session_id is 'The session that was revealed.';
comment on column analytics.reveals.tracker_id is 'The session''s tracker.';
comment on column analytics.reveals.partner_id is 'Who asked.';
comment on column analytics.reveals.key_id is 'With which key; null: a user of the dashboard asked.';
comment on column analytics.reveals.asked_by is 'key or user.';
comment on column analytics.reveals.created_at is 'When it was asked for.';
comment on column analytics.reveals.completed_at is 'When its result stood; null: it is pending.';
comment on column analytics.reveals.expires_at is 'From then on the API hides it; its row goes within moments, with the next sweep.';
comment on column analytics.reveals.billable is 'Whether it has one unit; null: it is pending.';
comment on column analytics.reveals.match_type is 'company, isp or unclassified; null: it is pending.';
comment on column analytics.reveals.company_found is 'Whether a company was found; null: it is pending.';
comment on column analytics.reveals.stale is 'Whether the result was stale when the reveal completed.';
comment on column analytics.reveals.company_name is 'Null, here and below: unknown.';
comment on column analytics.reveals.company_website is 'The company''s website.';
comment on column analytics.reveals.industry is 'The company''s industry.';
comment on column analytics.reveals.country_code is 'Of the company, ISO 3166-1 alpha-2.';
comment on column analytics.reveals.employees is 'A number or a range, as the provider tells it.';
comment on column analytics.reveals.revenue_band is 'The range that the company''s revenue is in.';

create view analytics.units as
select reveal_id, partner_id, tracker_id, key_id, case when key_id is null then 'user' else 'key' end as asked_by,
       completed_at, to_char(completed_at at time zone 'UTC', 'YYYY-MM') as month, units, ledger_number
from read.reveal_unit where analytics.time_is_limited();
comment on view analytics.units is 'Every completed reveal and its unit, for ever: what is billed. "doorplate audit billing" proves it.';
comment on column analytics.units.reveal_id is 'Names the reveal; its receipt may be gone.';
comment on column analytics.units.partner_id is 'Who is charged.';
comment on column analytics.units.tracker_id is 'The session''s tracker.';
comment on column analytics.units.key_id is 'The key that asked; null: a user of the dashboard did.';
comment on column analytics.units.asked_by is 'key or user.';
comment on column analytics.units.completed_at is 'The instant that decides the month.';
comment on column analytics.units.month is 'UTC month that the unit belongs to, YYYY-MM.';
comment on column analytics.units.units is '1: the result was nonempty. Else 0.';
comment on column analytics.units.ledger_number is 'Of its entry in the partner''s ledger; null until it has one, moments later.';

create view analytics.webhooks as
select e.webhook_id, e.partner_id, e.tracker_id, e.name, array_to_string(e.events, ' ') as events, e.enabled, e.created_at,
       e.updated_at, e.deleted_at, coalesce(h.pending, 0) as pending, coalesce(h.failures_in_row, 0) as failures_in_row,
       h.last_attempt_at
from read.webhook_endpoint e left join read.webhook_health h on h.webhook_id = e.webhook_id
where analytics.time_is_limited();
comment on view analytics.webhooks is 'Webhook endpoints, deleted ones too, without URL and secrets.';
comment on column analytics.webhooks.webhook_id is 'Names the endpoint.';
comment on column analytics.webhooks.partner_id is 'Whose it is.';
comment on column analytics.webhooks.tracker_id is 'Events of this tracker alone; null: of all of the partner''s.';
comment on column analytics.webhooks.name is 'As the partner named it.';
comment on column analytics.webhooks.events is 'Types that it subscribes to, separated by spaces.';
comment on column analytics.webhooks.enabled is 'False: it is paused.';
comment on column analytics.webhooks.created_at is 'When it was made.';
comment on column analytics.webhooks.updated_at is 'When it was last changed.';
comment on column analytics.webhooks.deleted_at is 'When it was deleted; null: it was not.';
comment on column analytics.webhooks.pending is 'Deliveries that wait; of a deleted endpoint they are cancelled.';
comment on column analytics.webhooks.failures_in_row is 'Attempts since the last that succeeded. From ten on one delivery at a time probes it.';
comment on column analytics.webhooks.last_attempt_at is 'Start of its last attempt; null: there was none.';

create view analytics.deliveries as
select d.delivery_id, d.webhook_id, d.partner_id, d.event_id, d.type,
       case when d.state = 'pending' and h.deleted_at is not null then 'cancelled' else d.state end as state,
       d.created_at, d.last_attempt_at, d.delivered_at,
       case when h.deleted_at is null then d.next_attempt_at end as next_attempt_at, d.payload_expires_at, d.cycle,
       d.attempts, d.http_status, d.error
from read.webhook_delivery d left join read.webhook_health h on h.webhook_id = d.webhook_id
where analytics.time_is_limited();
comment on view analytics.deliveries is 'Events on their way to endpoints, and what became of them, for 90 days, without their payloads. Each has its last attempt; all attempts are counted in delivery_attempts.';
comment on column analytics.deliveries.delivery_id is 'Names the delivery.';
comment on column analytics.deliveries.webhook_id is 'The endpoint.';
comment on column analytics.deliveries.partner_id is 'Whose endpoint it is.';
comment on column analytics.deliveries.event_id is 'The event; two endpoints have a delivery each of it.';
comment on column analytics.deliveries.type is 'session.created, reveal.completed or webhook.test.';
comment on column analytics.deliveries.state is 'pending, delivered, failed, cancelled (its endpoint was deleted) or expired (its payload is gone).';
comment on column analytics.deliveries.created_at is 'When it was queued.';
comment on column analytics.deliveries.last_attempt_at is 'Start of its last attempt; null: there was none.';
comment on column analytics.deliveries.delivered_at is 'When the receiver took it; null: it has not.';
comment on column analytics.deliveries.next_attempt_at is 'When it is due; null unless it is pending.';
comment on column analytics.deliveries.payload_expires_at is 'From then on it can no longer be sent: the API tells it as expired at once, this view with the next sweep.';
comment on column analytics.deliveries.cycle is '1, and one more with each manual retry.';
comment on column analytics.deliveries.attempts is 'Over all cycles.';
comment on column analytics.deliveries.http_status is 'Of the last attempt; null: the receiver did not answer.';
comment on column analytics.deliveries.error is 'Why the last attempt did not succeed: timeout, dns, connect, tls, blocked_address, redirect, http_status or own_origin; null: it did, or there was none.';

create view analytics.delivery_totals as
select t.day, t.webhook_id, t.partner_id,
       case when t.state = 'pending' and h.deleted_at is not null then 'cancelled' else t.state end as state, t.deliveries
from read.webhook_total t left join read.webhook_health h on h.webhook_id = t.webhook_id
where t.deliveries <> 0 and analytics.time_is_limited();
comment on view analytics.delivery_totals is 'How many deliveries of an endpoint are in which state, by the UTC day of their creation: cheaper than counting deliveries.';
comment on column analytics.delivery_totals.day is 'UTC day of their creation.';
comment on column analytics.delivery_totals.webhook_id is 'The endpoint.';
comment on column analytics.delivery_totals.partner_id is 'Whose endpoint it is.';
comment on column analytics.delivery_totals.state is 'As in deliveries.';
comment on column analytics.delivery_totals.deliveries is 'How many.';

create view analytics.delivery_attempts as
select a.hour, a.webhook_id, a.partner_id, a.outcome, nullif(a.http_status, 0) as http_status,
       sum(a.attempts)::bigint as attempts, sum(a.duration_ms)::bigint as duration_ms
from read.webhook_attempt_hour a
where analytics.time_is_limited()
group by a.hour, a.webhook_id, a.partner_id, a.outcome, a.http_status;
comment on view analytics.delivery_attempts is 'Attempts at deliveries by UTC hour, endpoint and outcome, for 90 days. A single attempt is in the events: "doorplate events show deliveries-<webhook>-<day>".';
comment on column analytics.delivery_attempts.hour is 'Start of the hour in which they began.';
comment on column analytics.delivery_attempts.webhook_id is 'The endpoint.';
comment on column analytics.delivery_attempts.partner_id is 'Whose endpoint it is.';
comment on column analytics.delivery_attempts.outcome is 'delivered, or why not, as in deliveries.error.';
comment on column analytics.delivery_attempts.http_status is 'What the receiver answered; null: it did not.';
comment on column analytics.delivery_attempts.attempts is 'How many.';
comment on column analytics.delivery_attempts.duration_ms is 'Sum of their durations, milliseconds: divide by attempts for the mean.';
