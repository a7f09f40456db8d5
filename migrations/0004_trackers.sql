-- Up Migration
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
create index on read.tracker (partner_id, created_at, tracker_id);
comment on table read.tracker is 'Trackers (pixels) of partners, deleted ones too. Written by projection trackers.';
comment on column read.tracker.origins is 'Where the pixel may run: serialised origins, or https://*.host.';
