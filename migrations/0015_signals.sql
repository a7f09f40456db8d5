-- Up Migration
create table read.signal (
  event_id text collate "C" primary key,
  batch uuid not null,
  day date not null,
  visitor text collate "C",
  domain text collate "C",
  site text collate "C",
  page_run text collate "C",
  submitted boolean,
  occurred_at timestamptz,
  sealed bytea
);
create index on read.signal (visitor, occurred_at) where visitor is not null;
create index on read.signal (day);
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
  hostname text collate "C" not null,
  profile text collate "C" not null,
  enriched_at timestamptz not null
);
create index on read.company_profile (hostname, profile desc, enriched_at desc);
comment on table read.company_profile is 'Websites of companies in saved results: what clues are matched with. Written by projection profiles.';
comment on column read.company_profile.hostname is 'Of the website, lower case, without www.';
comment on column read.company_profile.profile is 'What the company is called, in lower case: addresses of one company are one profile. Empty: nothing.';
