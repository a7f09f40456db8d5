-- Up Migration
-- Attempts at deliveries, counted where they are applied, since the deliveries themselves keep the last one alone.
create table read.webhook_attempt_hour (
  webhook_id uuid not null,
  partner_id uuid not null,
  day date not null,
  hour timestamptz not null,
  outcome text not null,
  http_status integer not null,
  attempts bigint not null,
  duration_ms bigint not null,
  primary key (webhook_id, day, hour, outcome, http_status)
);
create index on read.webhook_attempt_hour (hour);
comment on table read.webhook_attempt_hour is 'Attempts at deliveries by endpoint, UTC hour and outcome. Written by projection deliveries.';
comment on column read.webhook_attempt_hour.day is 'UTC day of the deliveries'' creation: with them they are forgotten.';
comment on column read.webhook_attempt_hour.hour is 'In which they began.';
comment on column read.webhook_attempt_hour.outcome is 'delivered, or why not, as in webhook_delivery.error.';
comment on column read.webhook_attempt_hour.http_status is '0: the receiver did not answer.';
comment on column read.webhook_attempt_hour.duration_ms is 'Sum of their durations, milliseconds.';

create schema analytics;
comment on schema analytics is
  'Views for analysts, over all partners: no address, label, secret, payload or e-mail, not even sealed or as a digest. Read through the role <database>_analyst, which "doorplate analytics grant" makes.';

-- A role's own statement_timeout is a default that it may change. Every view asks this, once a statement, so that nobody
-- but the schema's owner reads without an end in sight (docs/adr/0013).
create function analytics.time_is_limited() returns boolean
language plpgsql stable parallel safe
as $$
declare
  own interval := current_setting('statement_timeout')::interval;
begin
  if own > interval '0' and own <= interval '10 minutes' then return true; end if;
  if pg_has_role(current_user, (select nspowner from pg_namespace where nspname = 'analytics'), 'member') then
    return true;
  end if;
  raise exception 'statement_timeout must be between 1 millisecond and 10 minutes to read analytics, and is %',
      current_setting('statement_timeout')
    using errcode = 'object_not_in_prerequisite_state',
          hint = 'For example: set statement_timeout = ''5min''. What takes longer is a case for "doorplate export".';
end $$;
comment on function analytics.time_is_limited() is
  'True, or an error where the statement''s time is not limited to ten minutes; the schema''s owner is not limited.';
revoke execute on function analytics.time_is_limited() from public;

-- A rebuild of a projection puts new tables in the place of old ones and re-creates these views over them by CREATE OR
-- REPLACE, which keeps grants and comments. A view's first time is what "doorplate export --from --to" bounds.

create view analytics.partners as
select partner_id, name, created_at
from read.partner where analytics.time_is_limited();
comment on view analytics.partners is 'Partner accounts.';
comment on column analytics.partners.partner_id is 'Names the partner in all other views.';
comment on column analytics.partners.name is 'As the operator named it.';
comment on column analytics.partners.created_at is 'When the account was made.';

create view analytics.api_keys as
select key_id, partner_id, name, created_at, expires_at, revoked_at, requests_per_second, new_enrichments_per_day,
       pending_enrichments, company_signals
from read.api_key where analytics.time_is_limited();
comment on view analytics.api_keys is 'API keys and their limits, without anything that could stand for the key.';
comment on column analytics.api_keys.key_id is 'Names the key in all other views. It opens nothing.';
comment on column analytics.api_keys.partner_id is 'Whose it is.';
comment on column analytics.api_keys.name is 'As the partner or the operator named it.';
comment on column analytics.api_keys.created_at is 'When it was made.';
comment on column analytics.api_keys.expires_at is 'From then on it opens nothing; null: never.';
comment on column analytics.api_keys.revoked_at is 'When it was revoked; null: it was not.';
comment on column analytics.api_keys.requests_per_second is 'Most requests a second.';
comment on column analytics.api_keys.new_enrichments_per_day is 'Most new enrichments in a UTC day; null: no cap; 0: saved addresses only.';
comment on column analytics.api_keys.pending_enrichments is 'Most enrichments under way at once.';
comment on column analytics.api_keys.company_signals is 'Whether its lookup answers carry company signals.';

create view analytics.trackers as
select tracker_id, partner_id, name, array_to_string(origins, ' ') as origins, created_at, disabled_at, deleted_at
from read.tracker where analytics.time_is_limited();
comment on view analytics.trackers is 'Trackers (pixels) of partners, deleted ones too.';
comment on column analytics.trackers.tracker_id is 'Names the tracker in all other views.';
comment on column analytics.trackers.partner_id is 'Whose it is.';
comment on column analytics.trackers.name is 'As the partner named it.';
comment on column analytics.trackers.origins is 'Websites that it may run on, separated by spaces: origins, or https://*.host.';
comment on column analytics.trackers.created_at is 'When it was made.';
comment on column analytics.trackers.disabled_at is 'Since when it takes no visits; null: it is enabled.';
comment on column analytics.trackers.deleted_at is 'When it was deleted; null: it was not.';

create view analytics.domains as
select domain_id, tracker_id, partner_id, hostname, status, created_at, activated_at, last_error
from read.domain where analytics.time_is_limited();
comment on view analytics.domains is 'Custom host names that trackers have now.';
comment on column analytics.domains.domain_id is 'Names the domain.';
comment on column analytics.domains.tracker_id is 'The tracker that it collects for.';
comment on column analytics.domains.partner_id is 'Whose it is.';
comment on column analytics.domains.hostname is 'The host name, lower case.';
comment on column analytics.domains.status is 'pending, active or failed.';
comment on column analytics.domains.created_at is 'When it was claimed.';
comment on column analytics.domains.activated_at is 'When it last became active; null: it is not.';
comment on column analytics.domains.last_error is 'Why it does not point at the service; null: it does, or nobody has looked.';

create view analytics.lookups as
select enriched_at, fresh_until, match_type, needs_company_enrichment, array_to_string(sources, ' ') as sources,
       company ->> 'name' as company_name, company ->> 'website' as company_website, company ->> 'industry' as industry,
       company ->> 'industry_subcategory' as industry_subcategory, company ->> 'naics_code' as naics_code,
       company ->> 'sic_code' as sic_code, company ->> 'employees' as employees,
       company ->> 'annual_revenue' as annual_revenue, company ->> 'revenue_band' as revenue_band,
       company ->> 'city' as city, company ->> 'region' as region, company ->> 'country_code' as country_code,
       network ->> 'connection_type' as connection_type, network ->> 'audience_type' as audience_type,
       network ->> 'audience_group' as audience_group, network ->> 'detail_level' as detail_level,
       (network ->> 'is_isp')::boolean as is_isp
from read.saved_lookup where analytics.time_is_limited();
comment on view analytics.lookups is 'Saved lookup results, a row for each address, without the address. They are shared by all partners.';
comment on column analytics.lookups.enriched_at is 'When this was found out.';
comment on column analytics.lookups.fresh_until is 'From then on it is stale, and served until it is refreshed.';
comment on column analytics.lookups.match_type is 'company, isp or unclassified.';
comment on column analytics.lookups.needs_company_enrichment is 'Some provider could not contribute: the next POST requests the rest.';
comment on column analytics.lookups.sources is 'Providers whose answers stand in it, in the chain''s order, separated by spaces.';
comment on column analytics.lookups.company_name is 'Null, here and in the other fields of company and network: unknown.';
comment on column analytics.lookups.company_website is 'The company''s website.';
comment on column analytics.lookups.industry is 'The company''s industry.';
comment on column analytics.lookups.industry_subcategory is 'A finer division of the industry.';
comment on column analytics.lookups.naics_code is 'Industry by NAICS.';
comment on column analytics.lookups.sic_code is 'Industry by SIC.';
comment on column analytics.lookups.employees is 'A number or a range, as the provider tells it.';
comment on column analytics.lookups.annual_revenue is 'A number or a range, as the provider tells it.';
comment on column analytics.lookups.revenue_band is 'The range that the revenue is in.';
comment on column analytics.lookups.city is 'Of the company, not of a visitor.';
comment on column analytics.lookups.region is 'Of the company.';
comment on column analytics.lookups.country_code is 'Of the company, ISO 3166-1 alpha-2.';
comment on column analytics.lookups.connection_type is 'Of the network.';
comment on column analytics.lookups.audience_type is 'Of the network.';
comment on column analytics.lookups.audience_group is 'Of the network.';
comment on column analytics.lookups.detail_level is 'Of the network.';
comment on column analytics.lookups.is_isp is 'Whether the network is an internet provider''s.';

create view analytics.reservations as
select reservation_id, partner_id, key_id, kind, state, made_at, ended_at
from read.reservation where analytics.time_is_limited();
comment on view analytics.reservations is 'What partners asked to be enriched, against allowance and pending limit, without the addresses.';
comment on column analytics.reservations.reservation_id is 'Names the reservation.';
comment on column analytics.reservations.partner_id is 'Who asked.';
comment on column analytics.reservations.key_id is 'With which key.';
comment on column analytics.reservations.kind is 'first: nothing was saved. refresh: it was stale. completion: some provider had not contributed.';
comment on column analytics.reservations.state is 'reserved: not yet submitted. submitted: under way. completed, gave_up: as its enrichment ended. settled: ended without one.';
comment on column analytics.reservations.made_at is 'When it was asked.';
comment on column analytics.reservations.ended_at is 'When it no longer counted as pending; null: it still does.';

create view analytics.usage_hours as
select u.hour, k.partner_id, u.key_id, u.outcome, sum(u.requests)::bigint as requests,
       sum(u.cache_hits)::bigint as cache_hits, sum(u.duration_us)::bigint as duration_us
from read.usage_hour u left join read.api_key k on k.key_id = u.key_id
where analytics.time_is_limited()
group by u.hour, k.partner_id, u.key_id, u.outcome;
comment on view analytics.usage_hours is 'Lookup answers by UTC hour, key and outcome, for 400 days.';
comment on column analytics.usage_hours.hour is 'Start of the hour in which they were answered.';
comment on column analytics.usage_hours.partner_id is 'Whose key it is.';
comment on column analytics.usage_hours.key_id is 'The key that asked.';
comment on column analytics.usage_hours.outcome is 'company, isp, unclassified, enqueued, pending, retrying, invalid_request, rate_limited or error.';
comment on column analytics.usage_hours.requests is 'How many.';
comment on column analytics.usage_hours.cache_hits is 'How many of them a saved result answered.';
comment on column analytics.usage_hours.duration_us is 'Sum of their processing times, microseconds: divide by requests for the mean.';

create view analytics.tracker_hours as
select c.hour, t.partner_id, c.tracker_id, sum(c.capture_requests)::bigint as capture_requests,
       sum(c.api_requests)::bigint as api_requests, sum(c.completed_responses)::bigint as completed_responses,
       sum(c.company_responses)::bigint as company_responses, sum(c.sessions)::bigint as sessions,
       sum(c.reveals)::bigint as reveals
from (
  select tracker_id, hour, capture_requests, api_requests, completed_responses, company_responses,
         0::bigint as sessions, 0::bigint as reveals
  from read.tracker_calls_hour
  union all
  select tracker_id, hour, 0, 0, 0, 0, sessions, reveals from read.tracker_hour
) c left join read.tracker t on t.tracker_id = c.tracker_id
where analytics.time_is_limited()
group by c.hour, t.partner_id, c.tracker_id;
comment on view analytics.tracker_hours is 'What happened with trackers by UTC hour, for 400 days: it outlives sessions and reveals.';
comment on column analytics.tracker_hours.hour is 'Start of the hour.';
comment on column analytics.tracker_hours.partner_id is 'Whose tracker it is.';
comment on column analytics.tracker_hours.tracker_id is 'The tracker.';
comment on column analytics.tracker_hours.capture_requests is 'Requests of its pixel, those of crawlers and prefetches too.';
comment on column analytics.tracker_hours.api_requests is 'Previews, filtered feed pages, reveals and receipts that partners read with success.';
comment on column analytics.tracker_hours.completed_responses is 'Those of them with a complete result.';
comment on column analytics.tracker_hours.company_responses is 'Those of them that told a company.';
comment on column analytics.tracker_hours.sessions is 'Sessions that began in the hour.';
comment on column analytics.tracker_hours.reveals is 'Reveals that were asked for in the hour.';

create view analytics.sessions as
select session_id, tracker_id, partner_id, first_seen_at, last_seen_at, expires_at, visitor_country
from read.session where analytics.time_is_limited();
comment on view analytics.sessions is 'Visits to websites with a tracker, for 30 days, without address and labels.';
comment on column analytics.sessions.session_id is 'Names the session.';
comment on column analytics.sessions.tracker_id is 'The tracker that saw it.';
comment on column analytics.sessions.partner_id is 'Whose tracker that is.';
comment on column analytics.sessions.first_seen_at is 'Its first page view.';
comment on column analytics.sessions.last_seen_at is 'Its last page view so far.';
comment on column analytics.sessions.expires_at is 'From then on the API hides it; its row goes within moments, with the next sweep.';
comment on column analytics.sessions.visitor_country is 'ISO 3166-1 alpha-2, estimated from the address (IP geolocation by DB-IP); null: unknown.';

create view analytics.reveals as
select reveal_id, session_id, tracker_id, partner_id, key_id, case when key_id is null then 'user' else 'key' end as asked_by,
       created_at, completed_at, expires_at, billable, result ->> 'match_type' as match_type,
       (result ->> 'company_found')::boolean as company_found, (result ->> 'stale')::boolean as stale,
       result -> 'company' ->> 'name' as company_name, result -> 'company' ->> 'website' as company_website,
       result -> 'company' ->> 'industry' as industry, result -> 'company' ->> 'country_code' as country_code,
       result -> 'company' ->> 'employees' as employees, result -> 'company' ->> 'revenue_band' as revenue_band
from read.reveal where analytics.time_is_limited();
comment on view analytics.reveals is 'Reveals as long as their receipts are kept: 30 days from their session''s beginning. What was billed for longer is in units.';
comment on column analytics.reveals.reveal_id is 'Names the reveal.';
comment on column analytics.reveals.session_id is 'The session that was revealed.';
comment on column analytics.reveals.tracker_id is 'The session''s tracker.';
comment on column analytics.reveals.partner_id is 'Who asked.';
comment on column analytics.reveals.key_id is 'With which key; null: a user of the dashboard asked.';
comment on column analytics.reveals.asked_by is 'key or user.';
comment on column analytics.reveals.created_at is 'When it was asked for.';
comment on column analytics.reveals.completed_at is 'When its result stood; null: it is pending.';
comment on column analytics.reveals.expires_at is 'From then on the API hides it; its row goes within moments, with the next sweep.';
comment on column analytics.reveals.billable is 'Whether it has one unit; null: it is pending.';
comment on column analytics.reveals.match_type is 'company, isp or unclassified; null: it is pending.';
comment on column analytics.reveals.company_found is 'Whether a company was found; null: it is pending.';
comment on column analytics.reveals.stale is 'Whether the result was stale when the reveal completed.';
comment on column analytics.reveals.company_name is 'Null, here and below: unknown.';
comment on column analytics.reveals.company_website is 'The company''s website.';
comment on column analytics.reveals.industry is 'The company''s industry.';
comment on column analytics.reveals.country_code is 'Of the company, ISO 3166-1 alpha-2.';
comment on column analytics.reveals.employees is 'A number or a range, as the provider tells it.';
comment on column analytics.reveals.revenue_band is 'The range that the company''s revenue is in.';

create view analytics.units as
select reveal_id, partner_id, tracker_id, key_id, case when key_id is null then 'user' else 'key' end as asked_by,
       completed_at, to_char(completed_at at time zone 'UTC', 'YYYY-MM') as month, units, ledger_number
from read.reveal_unit where analytics.time_is_limited();
comment on view analytics.units is 'Every completed reveal and its unit, for ever: what is billed. "doorplate audit billing" proves it.';
comment on column analytics.units.reveal_id is 'Names the reveal; its receipt may be gone.';
comment on column analytics.units.partner_id is 'Who is charged.';
comment on column analytics.units.tracker_id is 'The session''s tracker.';
comment on column analytics.units.key_id is 'The key that asked; null: a user of the dashboard did.';
comment on column analytics.units.asked_by is 'key or user.';
comment on column analytics.units.completed_at is 'The instant that decides the month.';
comment on column analytics.units.month is 'UTC month that the unit belongs to, YYYY-MM.';
comment on column analytics.units.units is '1: the result was nonempty. Else 0.';
comment on column analytics.units.ledger_number is 'Of its entry in the partner''s ledger; null until it has one, moments later.';

create view analytics.webhooks as
select e.webhook_id, e.partner_id, e.tracker_id, e.name, array_to_string(e.events, ' ') as events, e.enabled, e.created_at,
       e.updated_at, e.deleted_at, coalesce(h.pending, 0) as pending, coalesce(h.failures_in_row, 0) as failures_in_row,
       h.last_attempt_at
from read.webhook_endpoint e left join read.webhook_health h on h.webhook_id = e.webhook_id
where analytics.time_is_limited();
comment on view analytics.webhooks is 'Webhook endpoints, deleted ones too, without URL and secrets.';
comment on column analytics.webhooks.webhook_id is 'Names the endpoint.';
comment on column analytics.webhooks.partner_id is 'Whose it is.';
comment on column analytics.webhooks.tracker_id is 'Events of this tracker alone; null: of all of the partner''s.';
comment on column analytics.webhooks.name is 'As the partner named it.';
comment on column analytics.webhooks.events is 'Types that it subscribes to, separated by spaces.';
comment on column analytics.webhooks.enabled is 'False: it is paused.';
comment on column analytics.webhooks.created_at is 'When it was made.';
comment on column analytics.webhooks.updated_at is 'When it was last changed.';
comment on column analytics.webhooks.deleted_at is 'When it was deleted; null: it was not.';
comment on column analytics.webhooks.pending is 'Deliveries that wait; of a deleted endpoint they are cancelled.';
comment on column analytics.webhooks.failures_in_row is 'Attempts since the last that succeeded. From ten on one delivery at a time probes it.';
comment on column analytics.webhooks.last_attempt_at is 'Start of its last attempt; null: there was none.';

create view analytics.deliveries as
select d.delivery_id, d.webhook_id, d.partner_id, d.event_id, d.type,
       case when d.state = 'pending' and h.deleted_at is not null then 'cancelled' else d.state end as state,
       d.created_at, d.last_attempt_at, d.delivered_at,
       case when h.deleted_at is null then d.next_attempt_at end as next_attempt_at, d.payload_expires_at, d.cycle,
       d.attempts, d.http_status, d.error
from read.webhook_delivery d left join read.webhook_health h on h.webhook_id = d.webhook_id
where analytics.time_is_limited();
comment on view analytics.deliveries is 'Events on their way to endpoints, and what became of them, for 90 days, without their payloads. Each has its last attempt; all attempts are counted in delivery_attempts.';
comment on column analytics.deliveries.delivery_id is 'Names the delivery.';
comment on column analytics.deliveries.webhook_id is 'The endpoint.';
comment on column analytics.deliveries.partner_id is 'Whose endpoint it is.';
comment on column analytics.deliveries.event_id is 'The event; two endpoints have a delivery each of it.';
comment on column analytics.deliveries.type is 'session.created, reveal.completed or webhook.test.';
comment on column analytics.deliveries.state is 'pending, delivered, failed, cancelled (its endpoint was deleted) or expired (its payload is gone).';
comment on column analytics.deliveries.created_at is 'When it was queued.';
comment on column analytics.deliveries.last_attempt_at is 'Start of its last attempt; null: there was none.';
comment on column analytics.deliveries.delivered_at is 'When the receiver took it; null: it has not.';
comment on column analytics.deliveries.next_attempt_at is 'When it is due; null unless it is pending.';
comment on column analytics.deliveries.payload_expires_at is 'From then on it can no longer be sent: the API tells it as expired at once, this view with the next sweep.';
comment on column analytics.deliveries.cycle is '1, and one more with each manual retry.';
comment on column analytics.deliveries.attempts is 'Over all cycles.';
comment on column analytics.deliveries.http_status is 'Of the last attempt; null: the receiver did not answer.';
comment on column analytics.deliveries.error is 'Why the last attempt did not succeed: timeout, dns, connect, tls, blocked_address, redirect, http_status or own_origin; null: it did, or there was none.';

create view analytics.delivery_totals as
select t.day, t.webhook_id, t.partner_id,
       case when t.state = 'pending' and h.deleted_at is not null then 'cancelled' else t.state end as state, t.deliveries
from read.webhook_total t left join read.webhook_health h on h.webhook_id = t.webhook_id
where t.deliveries <> 0 and analytics.time_is_limited();
comment on view analytics.delivery_totals is 'How many deliveries of an endpoint are in which state, by the UTC day of their creation: cheaper than counting deliveries.';
comment on column analytics.delivery_totals.day is 'UTC day of their creation.';
comment on column analytics.delivery_totals.webhook_id is 'The endpoint.';
comment on column analytics.delivery_totals.partner_id is 'Whose endpoint it is.';
comment on column analytics.delivery_totals.state is 'As in deliveries.';
comment on column analytics.delivery_totals.deliveries is 'How many.';

create view analytics.delivery_attempts as
select a.hour, a.webhook_id, a.partner_id, a.outcome, nullif(a.http_status, 0) as http_status,
       sum(a.attempts)::bigint as attempts, sum(a.duration_ms)::bigint as duration_ms
from read.webhook_attempt_hour a
where analytics.time_is_limited()
group by a.hour, a.webhook_id, a.partner_id, a.outcome, a.http_status;
comment on view analytics.delivery_attempts is 'Attempts at deliveries by UTC hour, endpoint and outcome, for 90 days. A single attempt is in the events: "doorplate events show deliveries-<webhook>-<day>".';
comment on column analytics.delivery_attempts.hour is 'Start of the hour in which they began.';
comment on column analytics.delivery_attempts.webhook_id is 'The endpoint.';
comment on column analytics.delivery_attempts.partner_id is 'Whose endpoint it is.';
comment on column analytics.delivery_attempts.outcome is 'delivered, or why not, as in deliveries.error.';
comment on column analytics.delivery_attempts.http_status is 'What the receiver answered; null: it did not.';
comment on column analytics.delivery_attempts.attempts is 'How many.';
comment on column analytics.delivery_attempts.duration_ms is 'Sum of their durations, milliseconds: divide by attempts for the mean.';
