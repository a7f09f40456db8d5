-- Up Migration
alter table read.saved_lookup add column snapshotted boolean not null default false;
create index saved_lookup_to_snapshot on read.saved_lookup (ip) where not snapshotted;
comment on column read.saved_lookup.enriched_at is 'When it was found; midnight of that UTC day once it is snapshotted.';
comment on column read.saved_lookup.fresh_until is 'From then on it is stale; midnight of that UTC day once it is snapshotted.';
comment on column analytics.lookups.enriched_at is 'When this was found out: in full on the same day, later the UTC day alone.';
comment on column analytics.lookups.fresh_until is 'From then on it is stale, and served until it is refreshed: in full on the day that it was found out, later the UTC day alone.';
comment on column read.saved_lookup.snapshotted is 'Whether its times are cut to their UTC days, and the events behind them replaced by a snapshot.';

create table work.enrichment_truncation (ip text primary key);
comment on table work.enrichment_truncation is 'Addresses whose enrichment stream is being replaced by a snapshot. A row that stays is from a process that died meanwhile; the next run ends its work. Written by snapshot-enrichments.';
