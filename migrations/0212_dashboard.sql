-- What the dashboard of 0.3.0 keeps: recoveries of webhooks, evidence of installed pixels, teams, activity.

-- Why a tracker's pixel shows nothing.
create table work.install_evidence (
  tracker_id uuid not null,
  kind text not null,
  detail text not null,
  hour timestamptz not null,
  seen integer not null,
  last_at timestamptz not null,
  tabs integer not null,
  many_addresses boolean not null,
  public_address boolean not null,
  primary key (tracker_id, kind, detail, hour)
);
create index install_evidence_by_age on work.install_evidence (last_at);
comment on table work.install_evidence is
  'What processes saw of each tracker''s pixel, for the install check of the dashboard: at most 10 s late, for 7 days, without addresses. A diagnosis, no count that anything is decided or billed by.';
comment on column work.install_evidence.tracker_id is 'A tracker that there is or was.';
comment on column work.install_evidence.kind is
  'visit, script (the pixel''s script was fetched), crawler, prefetch, or why a capture was refused: a kind of domain/sessions/install-evidence.ts.';
comment on column work.install_evidence.detail is
  'Of wrong_origin an origin, of untrusted_host a Host header, 255 characters at most, the newest 20 of each; else empty.';
comment on column work.install_evidence.hour is 'UTC hour that is counted; -infinity where detail is given.';
comment on column work.install_evidence.seen is 'Requests of the hour; where detail is given, all since the row is there.';
comment on column work.install_evidence.last_at is 'Time of the last request.';
comment on column work.install_evidence.tabs is 'Of visits: browser tabs that a process had seen on the UTC day, counted up to 5.';
comment on column work.install_evidence.many_addresses is 'Of visits: a process had seen them from more than one network on the UTC day.';
comment on column work.install_evidence.public_address is 'Of visits: a process had seen one from a public address on the UTC day.';

-- Who did what.
create table read.activity (
  position bigint primary key,
  partner_id uuid not null,
  at timestamptz not null,
  actor_kind text not null,
  actor_id text not null,
  action text not null,
  subject_kind text not null,
  subject_id text not null,
  summary text not null
);
create index activity_of_partner on read.activity (partner_id, at, position);
create index activity_of_actor on read.activity (partner_id, actor_kind, actor_id, at, position);
create index activity_of_subject on read.activity (partner_id, subject_kind, at, position);
create index activity_of_actor_and_subject on read.activity (partner_id, actor_kind, actor_id, subject_kind, at, position);
create index activity_by_age on read.activity (at);
comment on table read.activity is
  'Who changed what of a partner, a row for each event that the dashboard shows as activity, for 400 days. Without secrets, addresses and names of users. Written by projection activity.';
comment on column read.activity.position is 'Of the event in the log.';
comment on column read.activity.at is 'Time of the event.';
comment on column read.activity.actor_kind is
  'key (an API key), user (of the dashboard), operator (the command doorplate) or service (it did it by itself).';
comment on column read.activity.actor_id is 'Of the key or the user; else empty.';
comment on column read.activity.action is 'What was done: an action of projections/activity/activity.ts.';
comment on column read.activity.subject_kind is 'What it was done to: partner, key, user, tracker, domain, webhook or reveal.';
comment on column read.activity.subject_id is 'Id of the subject.';
comment on column read.activity.summary is 'Details in words; may be empty.';
