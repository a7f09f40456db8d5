-- What 0.3.0 adds. Tables and columns that only 0.2.0 uses stay until a later release: its processes may run beside this one.

-- Rates: the sweep finds counts that are older than their window.
alter table work.rate add column window_ms bigint;
comment on column work.rate.window_ms is
  'Length of the window, milliseconds. Two windows after its last use the row is deleted. Null: not used since 0.2.0.';

create or replace function work.take_rate(
  rate_name text, ceiling integer, window_ms bigint, wanted integer, at_ms bigint, unused integer, unused_slot bigint
) returns table (granted integer, granted_slot bigint, retry_ms bigint, was_ahead boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  width bigint := greatest(1, take_rate.window_ms / 10);
  now_slot bigint := at_ms / width;
  held work.rate;
  shift bigint;
  tenth bigint;
  first integer := case when take_rate.window_ms > 1000 then 2 else 1 end;
  total integer := 0;
begin
  insert into work.rate (name, slot, used, window_ms)
    values (rate_name, now_slot, array_fill(0, array[11]), take_rate.window_ms)
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
  tenth := 11 - (now_slot - unused_slot);
  if unused > 0 and tenth between 1 and 11 then
    held.used[tenth] := greatest(0, held.used[tenth] - unused);
  end if;
  for i in first .. 11 loop total := total + held.used[i]; end loop;
  granted := greatest(0, least(wanted, ceiling - total));
  granted_slot := now_slot;
  retry_ms := 0;
  if granted = 0 then
    retry_ms := take_rate.window_ms;
    for i in first .. 11 loop
      if held.used[i] > 0 then
        retry_ms := (now_slot + i + 1 - first) * width - at_ms;
        exit;
      end if;
    end loop;
  end if;
  held.used[11] := held.used[11] + granted;
  update work.rate set slot = now_slot, used = held.used, window_ms = take_rate.window_ms where name = rate_name;
  return next;
end $$;

-- Providers of company data.
-- Questions to providers of company data, by UTC day: what budgets are held against, and what operators compare vendors by.
create table work.provider_day (
  provider text not null,
  day date not null,
  budget_used integer not null default 0,
  company bigint not null default 0,
  isp bigint not null default 0,
  unclassified bigint not null default 0,
  unknown bigint not null default 0,
  failed bigint not null default 0,
  not_asked bigint not null default 0,
  taken bigint not null default 0,
  duration_ms bigint not null default 0,
  primary key (provider, day)
);
comment on table work.provider_day is
  'Questions to providers of company data by UTC day. Written by the enrichment attempts; kept for 400 days.';
comment on column work.provider_day.budget_used is 'Requests taken from the budget of the day. Counted only while there is a budget.';
comment on column work.provider_day.unknown is 'Answers that the address is unknown.';
comment on column work.provider_day.not_asked is 'Questions that were held back: by the rate, the budget or the circuit breaker.';
comment on column work.provider_day.taken is 'Results whose company is this provider''s.';
comment on column work.provider_day.duration_ms is 'Sum of the durations of the calls, milliseconds.';

-- Which providers the workers ask, so that a process that asks none knows which saved results are incomplete.
alter table work.process add column providers text[];
comment on column work.process.providers is 'The providers that it asks, in their order; null: it asks none, or is of a release before 0.3.0.';

-- The default is what the release before asked, which writes no such column.
alter table read.saved_lookup add column answered_by text[] not null default '{directory,http}';
comment on column read.saved_lookup.answered_by is
  'Providers that answered, those that know nothing too. A POST requests more while one of the configured is missing.';

create view analytics.providers as
select day, provider, company + isp + unclassified + unknown + failed as calls, failed, not_asked, company, isp,
       unclassified, unknown, taken, duration_ms
from work.provider_day where analytics.time_is_limited();
comment on view analytics.providers is
  'Questions to the operator''s providers of company data, a row for each provider and UTC day. Without an address or a partner.';
comment on column analytics.providers.day is 'UTC day.';
comment on column analytics.providers.provider is 'As the operator named it.';
comment on column analytics.providers.calls is 'How often it was called: the sum of the next columns but not_asked.';
comment on column analytics.providers.failed is 'Calls that failed or timed out. They say nothing about the address.';
comment on column analytics.providers.not_asked is 'Questions that were held back by its rate, its budget or its circuit breaker.';
comment on column analytics.providers.company is 'Answers with a company.';
comment on column analytics.providers.isp is 'Answers with an internet provider.';
comment on column analytics.providers.unclassified is 'Answers with neither.';
comment on column analytics.providers.unknown is 'Answers that the address is unknown.';
comment on column analytics.providers.taken is 'Results whose company is this provider''s.';
comment on column analytics.providers.duration_ms is 'Sum of the durations of the calls, milliseconds.';

alter table read.reveal add column company_key text;
comment on column read.reveal.company_key is 'MD5 of the name of the company that was found, in lower case; null: none, or completed before 0.3.0 and not rebuilt.';

alter table read.reservation add column attempts_before integer not null default 0;
comment on column read.reservation.attempts_before is 'Failed attempts of the enrichment from before this reservation joined it.';

alter table work.claim add column held_by text;
comment on column work.claim.held_by is
  'The provider that held the attempt back, which is due again as soon as that provider can be asked; null: the claim is held by its lease.';

comment on column analytics.deliveries.error is 'Why the last attempt failed: an error of docs/webhooks.md; null: it did not, or there was none.';

comment on table work.kept_out is 'Of 0.2.0 alone.';
comment on table work.login_network is 'Of 0.2.0 alone.';

-- Recoveries of webhooks, evidence of installed pixels, teams, activity, erasure, partners' lives, alerts, incremental exports.

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

alter table work.provider_day add column last_answered_at timestamptz, add column last_failed_at timestamptz;
comment on column work.provider_day.last_answered_at is 'When it last answered; null: not on this day, or counted by a release before 0.3.0.';
comment on column work.provider_day.last_failed_at is 'When it last failed; null as above.';

create table work.disk_sample (
  taken_at timestamptz primary key,
  used_bytes bigint not null
);
comment on table work.disk_sample is 'Size of the database by hour, kept for 8 days: how fast it grows. Written by a job.';
comment on column work.disk_sample.taken_at is 'By the clock of the process.';
comment on column work.disk_sample.used_bytes is 'pg_database_size of this database.';

create table work.operator_alert (
  alert_id text primary key,
  type text not null,
  body text not null,
  created_at timestamptz not null,
  due_at timestamptz not null,
  attempts integer not null default 0,
  last_attempt_at timestamptz,
  last_error text,
  last_http_status integer,
  delivered_at timestamptz,
  gave_up_at timestamptz
);
create index operator_alert_due on work.operator_alert (due_at) where delivered_at is null and gave_up_at is null;
create index operator_alert_type on work.operator_alert (type, created_at);
comment on table work.operator_alert is 'What the operator''s webhook has told and will tell, kept for 30 days after its end. Written by jobs while OPERATOR_WEBHOOK_URL is set.';
comment on column work.operator_alert.alert_id is 'Made from what it is about: one for each occurrence.';
comment on column work.operator_alert.body is 'Sent byte for byte at each attempt.';
comment on column work.operator_alert.due_at is 'When the next attempt is due.';
comment on column work.operator_alert.last_error is 'Why the last attempt failed; null: it did not.';
comment on column work.operator_alert.gave_up_at is 'When its last attempt had failed.';

create table work.operator_condition (
  type text,
  about text,
  began_at timestamptz not null,
  primary key (type, about)
);
comment on table work.operator_condition is 'What lasts of that which the operator''s webhook tells: held endpoints, stopped consumers, ceased domains. Written by the same job, deleted when it ends.';
comment on column work.operator_condition.type is 'Of its alerts.';
comment on column work.operator_condition.about is 'The endpoint, consumer or domain.';
comment on column work.operator_condition.began_at is 'At the first look that saw it: names the occurrence.';

-- Partners that the operator suspends, resumes and deletes.
alter table read.partner
  add column suspended_at timestamptz,
  add column deleted_at timestamptz,
  add column ended_at timestamptz;
comment on column read.partner.name is 'Its name; of a deleted partner followed by its id, because another partner may have the name.';
comment on column read.partner.suspended_at is
  'Since when keys and pixels are refused, deliveries and reveals wait and users only read; null: the partner is active.';
comment on column read.partner.deleted_at is 'When the operator deleted it; null: it is not deleted.';
comment on column read.partner.ended_at is
  'When nothing was left of a deleted partner but the ledger, counts and anchors; null: it is not deleted, or its deletion is under way.';

create table read.webhook_suspension (
  partner_id uuid primary key,
  suspended_at timestamptz not null
);
comment on table read.webhook_suspension is
  'Partners whose deliveries stand still because the partner is suspended or deleted. Written by projection deliveries.';
comment on column read.webhook_suspension.suspended_at is 'Since when.';
alter table read.webhook_health add column partner_suspended_at timestamptz;
comment on column read.webhook_health.partner_suspended_at is
  'Since when its partner is suspended or deleted, so that no delivery is attempted; null: it is neither.';

-- Erasure of visitors: counts that outlive the events behind them, and days of clues that were written anew.
alter table read.tracker_hour
  add column mark_id uuid,
  add column marked_sessions bigint,
  add column marked_reveals bigint;
comment on column read.tracker_hour.mark_id is 'An erasure that counts the hour, from its mark in the log until it has recorded the count; null: none.';
comment on column read.tracker_hour.marked_sessions is 'sessions, as of the mark.';
comment on column read.tracker_hour.marked_reveals is 'reveals, as of the mark.';
alter table read.signal_day add column generation integer not null default 0;
comment on column read.signal_day.generation is 'Streams of the day that erasures have replaced: the stream is signals-<day>, from the first on signals-<day>~<generation>.';
comment on column read.signal_day.last_revision is 'Of the last event in the day''s newest stream.';
alter table read.expired_reveal add column reason text;
comment on column read.expired_reveal.reason is 'Why it ended before its time; null: it did not.';
alter table work.expiring add column reason text;
comment on column work.expiring.reason is 'Why it ends before its time; null: it does not.';
create table work.only_one_erasure ();
comment on table work.only_one_erasure is 'Empty; locked by the erasure that runs.';

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

create table read.erased_reservation (
  reservation_id uuid primary key,
  changed_position bigint not null
);
comment on table read.erased_reservation is 'Reservations that were erased with their address. Written by projection lookups.';
comment on column read.erased_reservation.changed_position is 'Log position of the erasure.';

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

-- Appends a group of appends of one process in one transaction, each to another stream: as eventlog.append_batch,
-- in one statement for all of them. The writers' row is locked before any head is read and held until commit, so
-- positions become visible in their own order, and a cursor that knows the last position alone never misses an event. What is
-- read after the lock is what the writer before has committed, because each statement has a snapshot of its own.
-- Expected: a revision, -1 no stream, -2 any, -4 stream exists. An event names its append by number, and its own within it, from 1.
create function eventlog.append_streams(
  streams text[], expected integer[], counts integer[],
  ids uuid[], types text[], datas json[], metadatas json[], appends integer[], numbers integer[]
) returns table (outcome text, revision integer, "position" bigint)
language plpgsql
-- Without it every call plans its statement anew, which costs more than running it.
set plan_cache_mode = force_generic_plan
-- Neither table is ever read whole, whatever the planner knows of it.
set enable_seqscan = off
as $$
begin
  perform eventlog.lock_writer();
  return query
  with wanted as materialized (
         select a.nth, a.stream, a.expected, a.count, coalesce(s.revision, -1) as at, coalesce(s.expired, false) as expired
         from unnest(streams, expected, counts) with ordinality as a (stream, expected, count, nth)
         -- Each by its index: a join that was planned while there were few streams would read all of them later.
         left join lateral (select h.revision, h.expired from eventlog.stream h where h.name = a.stream limit 1) s on true),
       event as materialized (
         select * from unnest(ids, types, datas, metadatas, appends, numbers) as e (id, type, data, metadata, nth, number)),
       -- Events of an append that is repeated, and their ids in other streams.
       known as materialized (
         select e.id, e.stream, e.revision, e.position from eventlog.event e where e.id = any (ids)),
       repeated as (
         select w.nth, min(k.revision) as lowest, max(k.revision) as highest, max(k.position) as top,
                count(*) filter (where k.stream = w.stream) as own
         from known k join event e using (id) join wanted w using (nth) group by w.nth),
       judged as materialized (
         select w.*, r.highest, r.top,
                case when w.expired then 'expired'
                     when r.nth is null then
                       case when (w.expected >= -1 and w.expected <> w.at) or (w.expected = -4 and w.at < 0) then 'conflict' end
                     when r.own = w.count and r.highest - r.lowest + 1 = w.count
                          and (w.expected = r.lowest - 1 or w.expected < -1) then 'appended'
                     else 'conflict' end as verdict
         from wanted w left join repeated r using (nth)),
       inserted as (
         insert into eventlog.event as i (stream, revision, id, type, data, metadata)
         select j.stream, j.at + e.number, e.id, e.type, e.data, e.metadata
         from event e join judged j using (nth) where j.verdict is null order by e.nth, e.number
         returning i.stream, i.position),
       moved as (
         insert into eventlog.stream (name, revision)
         select j.stream, j.at + j.count from judged j where j.verdict is null
         on conflict (name) do update set revision = excluded.revision)
  select coalesce(j.verdict, 'appended'),
         case when j.verdict is null then j.at + j.count when j.verdict = 'appended' then j.highest else j.at end,
         case when j.verdict is null then n.top when j.verdict = 'appended' then j.top end
  from judged j left join (select i.stream, max(i.position) as top from inserted i group by i.stream) n using (stream)
  order by j.nth;
end $$;
comment on table eventlog.event is 'The log. Written by eventlog.append_batch and eventlog.append_streams alone.';
