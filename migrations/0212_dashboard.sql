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

-- Teams: roles, invitations, second factors, and what each user sets for themself.
create table read.team_member (
  user_id uuid primary key,
  partner_id uuid not null,
  name text not null,
  role text not null,
  created_at timestamptz not null,
  removed_at timestamptz
);
create index team_member_of_partner on read.team_member (partner_id, created_at, user_id);
create index team_member_owner on read.team_member (partner_id, created_at) where removed_at is null and role = 'owner';
comment on table read.team_member is 'Users of the dashboard with their roles. Written by projection team.';
comment on column read.team_member.role is 'owner, member or read-only.';
comment on column read.team_member.removed_at is 'From then on the user logs in no more.';

-- The projection starts at the beginning of the log; until it has passed, users keep what they may do.
insert into read.team_member (user_id, partner_id, name, role, created_at, removed_at)
  select user_id, partner_id, name, 'owner', created_at, removed_at from read.user_account;

create table read.team (
  partner_id uuid primary key,
  second_factor_required boolean not null
);
comment on table read.team is 'What the owners of a partner have set for its users. Written by projection team.';
comment on column read.team.second_factor_required is 'Whether a user without a second factor must set one up before anything else.';

create table read.invitation (
  invitation_id uuid primary key,
  partner_id uuid not null,
  digest text not null,
  role text not null,
  note text not null,
  made_by uuid,
  made_at timestamptz not null,
  expires_at timestamptz not null,
  withdrawn_at timestamptz,
  accepted_at timestamptz,
  user_id uuid
);
create unique index invitation_digest_idx on read.invitation (digest);
create index invitation_open on read.invitation (partner_id, expires_at) where withdrawn_at is null and accepted_at is null;
comment on table read.invitation is 'Invitations to a partner''s team. Written by projection team.';
comment on column read.invitation.digest is 'SHA-256 of the link''s token, hex.';
comment on column read.invitation.role is 'What the invited person becomes: owner, member or read-only.';
comment on column read.invitation.note is 'Whom it is for, in the words of the owner who made it.';
comment on column read.invitation.made_by is 'The user who made it.';
comment on column read.invitation.user_id is 'The user that the invited person chose to be; null: not accepted.';

create table work.second_factor (
  user_id uuid primary key,
  secret json not null,
  last_step bigint not null,
  set_at timestamptz not null
);
comment on table work.second_factor is 'Second factors of dashboard users (RFC 6238). No event has them: a rebuild brings none of them back.';
comment on column work.second_factor.secret is 'The shared secret, sealed under the master key and bound to its user.';
comment on column work.second_factor.last_step is 'Step of 30 seconds of the last code that was taken: a code counts once.';

create table work.recovery_code (
  user_id uuid,
  digest text,
  primary key (user_id, digest)
);
comment on table work.recovery_code is 'Recovery codes of dashboard users that are not used yet.';
comment on column work.recovery_code.digest is 'Keyed digest of the user and the code.';

create table work.user_profile (
  user_id uuid primary key,
  time_zone text not null default 'UTC',
  logged_in_at timestamptz,
  used_at timestamptz
);
comment on table work.user_profile is 'What no event has of dashboard users: their time zone, and when they were last here.';
comment on column work.user_profile.time_zone is 'Name of the IANA time zone in which the pages show times.';
comment on column work.user_profile.logged_in_at is 'When the last login began.';
comment on column work.user_profile.used_at is 'Of the last request, give or take a minute.';

alter table work.login add column browser text;
alter table work.login add column with_second_factor boolean not null default false;
comment on column work.login.browser is 'Browser and system by the User-Agent, in words; null: not known.';
comment on column work.login.with_second_factor is 'Whether a code was given. Without one, a user who has a second factor is not logged in.';

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
comment on column read.webhook_recovery.completed_at is 'When it ended: none of its deliveries was pending, or the endpoint was paused or deleted. null: it runs.';
comment on column read.webhook_recovery.pending is 'Its deliveries in the state pending.';
comment on column read.webhook_recovery.delivered is 'Its deliveries in the state delivered.';
comment on column read.webhook_recovery.failed is 'Its deliveries in the state failed, until they are retried again.';
comment on column read.webhook_recovery.cancelled is 'Its deliveries that were pending when a later recovery took them over.';
comment on column read.webhook_recovery.expired is 'Its deliveries in the state expired.';

create table work.recovery_due (
  recovery_id uuid primary key
);
comment on table work.recovery_due is 'Recoveries of which all deliveries have been made due. The next one deletes the rows of those that are completed.';

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

-- Incremental exports for analysts: each row of the views has the log position of its last change.
alter table read.partner add column changed_position bigint not null default 0;
alter table read.api_key add column changed_position bigint not null default 0;
alter table read.tracker add column changed_position bigint not null default 0;
alter table read.domain add column changed_position bigint not null default 0;
alter table read.reservation add column changed_position bigint not null default 0;
alter table read.usage_hour add column changed_position bigint not null default 0;
alter table read.tracker_calls_hour add column changed_position bigint not null default 0;
alter table read.tracker_hour add column changed_position bigint not null default 0;
alter table read.reveal_unit add column changed_position bigint not null default 0;
alter table read.webhook_delivery add column changed_position bigint not null default 0;
alter table read.webhook_health add column changed_position bigint not null default 0;
alter table read.webhook_attempt_hour add column changed_position bigint not null default 0;
alter table read.expired_session add column changed_position bigint not null default 0;
alter table read.expired_reveal add column changed_position bigint not null default 0;
comment on column read.partner.changed_position is 'Log position of its last event; 0: before 0.3.0.';
comment on column read.api_key.changed_position is 'Log position of its last event; 0: before 0.3.0.';
comment on column read.tracker.changed_position is 'Log position of its last event; 0: before 0.3.0.';
comment on column read.domain.changed_position is 'Log position of its last event; 0: before 0.3.0.';
comment on column read.reservation.changed_position is 'Log position of the event that last changed it; 0: before 0.3.0.';
comment on column read.usage_hour.changed_position is 'Log position of the last event that counted; 0: before 0.3.0.';
comment on column read.tracker_calls_hour.changed_position is 'Log position of the last event that counted; 0: before 0.3.0.';
comment on column read.tracker_hour.changed_position is 'Log position of the last event that counted; 0: before 0.3.0.';
comment on column read.reveal_unit.changed_position is
  'Log position of its completion, then of its entry in the ledger; 0: before 0.3.0.';
comment on column read.webhook_delivery.changed_position is 'Log position of its last event; 0: before 0.3.0.';
comment on column read.webhook_health.changed_position is
  'Log position of the last event of the endpoint or of one of its deliveries; 0: before 0.3.0.';
comment on column read.webhook_attempt_hour.changed_position is 'Log position of the last attempt that was counted; 0: before 0.3.0.';
comment on column read.expired_session.changed_position is 'Log position of the event that tells of its expiry; 0: before 0.3.0.';
comment on column read.expired_reveal.changed_position is 'Log position of the event that tells of its expiry; 0: before 0.3.0.';

create table read.released_domain (
  domain_id uuid primary key,
  changed_position bigint not null
);
comment on table read.released_domain is 'Custom domains that were given up. Written by projection domains.';
comment on column read.released_domain.changed_position is 'Log position of the release.';

create table read.corrected_usage_hour (
  key_id text,
  hour timestamptz,
  outcome text,
  changed_position bigint not null,
  primary key (key_id, hour, outcome)
);
create index corrected_usage_hour_by_age on read.corrected_usage_hour (hour);
comment on table read.corrected_usage_hour is
  'Hours of which a count was taken back, so that their rows in usage_hour may be gone. Written by projection usage.';
comment on column read.corrected_usage_hour.changed_position is 'Log position of the last correction.';

create table read.corrected_tracker_hour (
  tracker_id uuid,
  hour timestamptz,
  changed_position bigint not null,
  primary key (tracker_id, hour)
);
create index corrected_tracker_hour_by_age on read.corrected_tracker_hour (hour);
comment on table read.corrected_tracker_hour is
  'Hours of which a count was taken back, so that their rows in tracker_calls_hour may be gone. Written by projection tracker-usage.';
comment on column read.corrected_tracker_hour.changed_position is 'Log position of the last correction.';

create table work.forgotten_change (
  name text primary key,
  position bigint not null
);
comment on table work.forgotten_change is
  'Up to which log position the ids of expired sessions and reveals have been forgotten: an incremental export from before that would miss expiries.';
comment on column work.forgotten_change.name is 'expired_session or expired_reveal.';
