-- Up Migration
create table read.session (
  session_id uuid primary key,
  partner_id uuid not null,
  tracker_id uuid not null,
  visitor_country text,
  sealed text not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  position bigint not null,
  stream text not null,
  last_revision integer not null,
  last_position bigint not null
);
-- The feed, all trackers or one; a tracker is of one partner.
create index on read.session (partner_id, position);
create index on read.session (tracker_id, position);
create index on read.session (expires_at);
create index on read.session using hash (stream);
comment on table read.session is 'Sessions that have not expired. Written by projection sessions.';
comment on column read.session.visitor_country is 'ISO 3166-1 alpha-2, estimated from the address; null: unknown.';
comment on column read.session.sealed is 'Address and labels, sealed under the key of the UTC day of first_seen_at, base64.';
comment on column read.session.position is 'Of SessionCreated in the log: the order of the feed.';
comment on column read.session.stream is 'The tab''s stream: several sessions may share it.';
comment on column read.session.last_revision is 'Of the session''s newest event in its stream.';
comment on column read.session.last_position is 'Of the session''s newest event in the log.';

create table read.expired_session (
  session_id uuid primary key,
  partner_id uuid not null,
  expired_at timestamptz not null
);
comment on table read.expired_session is 'Sessions that have expired: told as gone for 60 days. Written by projection sessions.';

-- Whether a page of some origin may ask (the preflight of a capture): no tracker is named then.
create index on read.tracker using gin (origins) where disabled_at is null and deleted_at is null;
