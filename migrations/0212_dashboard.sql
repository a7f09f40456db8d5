-- What the dashboard of 0.3.0 keeps: recoveries of webhooks, evidence of installed pixels, teams, activity.

-- Teams: roles, invitations, second factors, and what each user sets for themself.
create table read.team_member (
  user_id uuid primary key,
  partner_id uuid not null,
  name text not null,
  role text not null,
  created_at timestamptz not null,
  removed_at timestamptz
);
create index team_member_present on read.team_member (partner_id, created_at, user_id) where removed_at is null;
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
