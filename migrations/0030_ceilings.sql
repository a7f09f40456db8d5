-- Ceilings of a partner: what its dashboard users may give its keys, and how many things it may have.
alter table read.partner
  add column requests_per_second integer not null default 50,
  add column new_enrichments_per_day integer,
  add column pending_enrichments integer not null default 10000,
  add column keys integer not null default 100,
  add column domains integer not null default 100,
  add column company_signals boolean not null default false;
comment on column read.partner.requests_per_second is 'The most that a dashboard user may give a key.';
comment on column read.partner.new_enrichments_per_day is 'The most that a dashboard user may give a key; null: no ceiling.';
comment on column read.partner.pending_enrichments is 'The most that a dashboard user may give a key.';
comment on column read.partner.keys is 'Keys, neither revoked nor expired, up to which dashboard users may make more.';
comment on column read.partner.domains is 'Custom domains that the partner may have, deleted ones apart.';
comment on column read.partner.company_signals is 'Whether a dashboard user may give a key company signals.';
