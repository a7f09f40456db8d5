-- Up Migration
create schema read;

comment on schema read is 'Read models: each table is written by one projection alone and can be rebuilt from the event store.';

create table read.projection (
  name text primary key,
  position bigint,
  stopped_by text
);
comment on table read.projection is 'How far each projection has come. The rows and what they speak of commit together.';
comment on column read.projection.position is 'All events up to here are applied; null before the first.';
comment on column read.projection.stopped_by is 'The event that this projection could not apply, and why; null while it runs.';

create table read.partner (
  partner_id uuid primary key,
  name text not null unique,
  created_at timestamptz not null
);
comment on table read.partner is 'Partner accounts. Written by projection partners.';

create table read.api_key (
  key_id text primary key,
  partner_id uuid not null,
  name text not null,
  hash text not null unique,
  requests_per_second integer not null,
  new_enrichments_per_day integer,
  pending_enrichments integer not null,
  company_signals boolean not null,
  expires_at timestamptz,
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index on read.api_key (partner_id);
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
  needs_company_enrichment boolean not null
);
comment on table read.saved_lookup is 'What is known of an address, shared by all partners. Written by projection lookups.';

create table read.enrichment_work (
  ip text primary key,
  round integer not null,
  kind text not null,
  requested_at timestamptz not null,
  attempts integer not null,
  next_attempt_at timestamptz not null,
  last_attempt_at timestamptz
);
create index on read.enrichment_work (next_attempt_at);
comment on table read.enrichment_work is 'Enrichments under way, one row an address. Written by projection lookups.';
comment on column read.enrichment_work.kind is 'first, refresh or completion.';

create table read.reservation (
  reservation_id uuid primary key,
  partner_id uuid not null,
  key_id text not null,
  ip text not null,
  kind text not null,
  state text not null check (state in ('reserved', 'submitted', 'completed', 'gave_up', 'settled')),
  made_at timestamptz not null,
  ended_at timestamptz
);
create index on read.reservation (partner_id, ip, made_at desc, reservation_id desc);
create index on read.reservation (partner_id, made_at) where state in ('reserved', 'submitted');
create index on read.reservation (made_at) where state = 'reserved';
create index on read.reservation (partner_id, ended_at);
comment on table read.reservation is 'What partners asked to be enriched, against allowance and pending limit. Written by projection lookups.';
comment on column read.reservation.state is 'reserved: not yet submitted. submitted: under way. completed, gave_up: as its enrichment ended. settled: ended without one.';

create table read.usage_hour (
  key_id text not null,
  hour timestamptz not null,
  outcome text not null,
  source text not null,
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
  totalled boolean not null
);
create index on read.usage_source (day) where not totalled;
comment on table read.usage_source is 'Usage streams, and whether totals stand for their counts yet. Written by projection usage.';
