-- No transaction
-- Indexes of 0.3.0, built beside running processes.

-- The dashboard lists a partner's keys that are not revoked, and the last that were.
drop index concurrently if exists read.api_key_revoked;
create index concurrently api_key_revoked on read.api_key (partner_id, revoked_at);

-- The dashboard reads the first reveals of a session, which may have any number.
drop index concurrently if exists read.reveal_of_session;
create index concurrently reveal_of_session on read.reveal (session_id, created_at, reveal_id);
drop index concurrently if exists read.reveal_session_id_idx;

-- Reveals whose results have arrived are completed by partner, page by page.
drop index concurrently if exists work.awaited_result_ready;
create index concurrently awaited_result_ready on work.awaited_result (partner_id, reveal_id) where ready;
drop index concurrently if exists work.awaited_result_partner_id_idx;

-- Lists of a partner's trackers and endpoints pass over deleted rows, of which there may be any number.
drop index concurrently if exists read.tracker_live;
create index concurrently tracker_live on read.tracker (partner_id, created_at, tracker_id) where deleted_at is null;
drop index concurrently if exists read.webhook_endpoint_live;
create index concurrently webhook_endpoint_live on read.webhook_endpoint (partner_id, created_at, webhook_id)
  where deleted_at is null;
drop index concurrently if exists read.webhook_health_live;
create index concurrently webhook_health_live on read.webhook_health (partner_id) where deleted_at is null;

-- A script may create, change and delete webhook endpoints all day, or reveal sessions whose results do not come: what reads
-- the rest passes over those rows.
drop index concurrently if exists read.webhook_endpoint_deleted;
create index concurrently webhook_endpoint_deleted on read.webhook_endpoint (deleted_at, partner_id) where deleted_at is not null;
drop index concurrently if exists read.webhook_health_deleted;
create index concurrently webhook_health_deleted on read.webhook_health (deleted_at, partner_id) where deleted_at is not null;
drop index concurrently if exists read.webhook_subscription_open;
create index concurrently webhook_subscription_open on read.webhook_subscription (webhook_id) where to_position is null;
drop index concurrently if exists read.webhook_subscription_ended;
create index concurrently webhook_subscription_ended on read.webhook_subscription (to_position) where to_position is not null;
drop index concurrently if exists work.awaited_result_asked;
create index concurrently awaited_result_asked on work.awaited_result (partner_id) where asked and not ready;

-- An audit reads the unswept reveals of one partner by pages, past those of all others.
drop index concurrently if exists read.reveal_of_partner;
create index concurrently reveal_of_partner on read.reveal (partner_id, reveal_id);

-- A visitor may begin any number of sessions in one tab: a hash index takes a time that grows with them for each new row.
drop index concurrently if exists read.session_of_stream;
create index concurrently session_of_stream on read.session (stream, expires_at);
drop index concurrently if exists read.session_stream_idx;

-- The nightly run finds the days and partners of expired ids by an index that has both: a day may have millions of ids.
drop index concurrently if exists read.expired_session_of_day;
create index concurrently expired_session_of_day on read.expired_session (day, partner_id);
drop index concurrently if exists read.expired_session_day_idx;
drop index concurrently if exists read.expired_reveal_of_day;
create index concurrently expired_reveal_of_day on read.expired_reveal (day, partner_id);
drop index concurrently if exists read.expired_reveal_day_idx;

-- Reveals that wait for one address are marked page by page, past those that are marked.
drop index concurrently if exists work.awaited_result_of_address;
create index concurrently awaited_result_of_address on work.awaited_result (address_digest, reveal_id);
drop index concurrently if exists work.awaited_result_address_digest_idx;

-- A tracker's usage counts its pending reveals, of which there may be any number, in the index alone.
drop index concurrently if exists read.reveal_pending_of_tracker;
create index concurrently reveal_pending_of_tracker on read.reveal (tracker_id, expires_at) where completed_at is null;
drop index concurrently if exists read.reveal_tracker_id_idx;

-- A claim looks for those of its endpoint and its deliveries. By their leases it read those of all endpoints, dead rows too.
drop index concurrently if exists work.delivery_claim_lease_until_idx;

-- The snapshots of past days are found without the results of today, of which one partner may leave a million.
drop index concurrently if exists read.saved_lookup_of_day_to_snapshot;
create index concurrently saved_lookup_of_day_to_snapshot on read.saved_lookup (((enriched_at at time zone 'UTC')::date), ip) where not snapshotted;

-- One partner may leave millions of reveals of one address: those that wait are found past those whose result has arrived,
-- and those that have not expired past those that have.
drop index concurrently if exists work.awaited_result_waiting;
create index concurrently awaited_result_waiting on work.awaited_result (address_digest, reveal_id) where not ready;
drop index concurrently if exists work.awaited_result_unasked;
create index concurrently awaited_result_unasked on work.awaited_result (partner_id, expires_at, reveal_id) where not asked;

-- A year of usage is millions of rows, of which those past their retention are deleted.
drop index concurrently if exists read.usage_hour_by_age;
create index concurrently usage_hour_by_age on read.usage_hour (hour);
drop index concurrently if exists read.usage_source_by_age;
create index concurrently usage_source_by_age on read.usage_source (day);

-- A script may make and delete endpoints all day, and each with a delivery has totals for 90 days: those past that are found by
-- their day.
drop index concurrently if exists read.webhook_total_by_day;
create index concurrently webhook_total_by_day on read.webhook_total (day, webhook_id);

-- The partner whose last check is longest ago is next.
drop index concurrently if exists work.domain_look_of_partner;
create index concurrently domain_look_of_partner on work.domain_look (partner_id, looked_at);

-- Its condition is that of no other index: of few trackers PostgreSQL would go through all for each origin of a preflight, by an
-- index that has the same condition.
drop index concurrently if exists read.tracker_live_origins;
create index concurrently tracker_live_origins on read.tracker using gin (origins) with (fastupdate = off)
  where coalesce(disabled_at, deleted_at) is null;

-- What of an endpoint has expired and is not swept yet is shown as expired. The sweep's own index has that of all endpoints, of
-- which one may leave millions.
drop index concurrently if exists read.webhook_delivery_to_expire;
create index concurrently webhook_delivery_to_expire on read.webhook_delivery (webhook_id, payload_expires_at) where state <> 'expired';

-- The dashboard's lists of deliveries are filtered by state, type and day; a recovery counts and finds what failed or waits since a time.
drop index concurrently if exists read.webhook_delivery_listed;
create index concurrently webhook_delivery_listed on read.webhook_delivery (webhook_id, state, type, created_at, position);

-- The dashboard groups the newest reveals that found a company in the index alone, and lists those of one company.
drop index concurrently if exists read.reveal_of_company;
create index concurrently reveal_of_company
  on read.reveal (partner_id, expires_at, company_key, tracker_id, session_id) where company_key is not null;
drop index concurrently if exists read.reveal_of_company_name;
create index concurrently reveal_of_company_name on read.reveal (partner_id, company_key, completed_at) where company_key is not null;

-- The dashboard's list of sessions is filtered by country.
drop index concurrently if exists read.session_of_country;
create index concurrently session_of_country on read.session (partner_id, left(visitor_country, 2), position);

-- Units of a tracker are summed by day in the index alone.
drop index concurrently if exists read.reveal_unit_of_tracker;
create index concurrently reveal_unit_of_tracker on read.reveal_unit (tracker_id, completed_at) include (units);
drop index concurrently if exists read.reveal_unit_tracker_id_completed_at_idx;

-- Indexes by which incremental exports find what changed since a position, built beside running processes. BRIN, because it
-- costs a row's writer next to nothing: rows lie about in the order of their positions, and an update of a row stays HOT.

drop index concurrently if exists read.session_changed;
create index concurrently session_changed on read.session using brin (last_position);
drop index concurrently if exists read.expired_session_changed;
create index concurrently expired_session_changed on read.expired_session using brin (changed_position);
drop index concurrently if exists read.reveal_changed;
create index concurrently reveal_changed on read.reveal using brin (last_position);
drop index concurrently if exists read.expired_reveal_changed;
create index concurrently expired_reveal_changed on read.expired_reveal using brin (changed_position);
drop index concurrently if exists read.reveal_unit_changed;
create index concurrently reveal_unit_changed on read.reveal_unit using brin (changed_position);
drop index concurrently if exists read.reservation_changed;
create index concurrently reservation_changed on read.reservation using brin (changed_position);
drop index concurrently if exists read.webhook_delivery_changed;
create index concurrently webhook_delivery_changed on read.webhook_delivery using brin (changed_position);
drop index concurrently if exists read.webhook_attempt_hour_changed;
create index concurrently webhook_attempt_hour_changed on read.webhook_attempt_hour using brin (changed_position);
drop index concurrently if exists read.usage_hour_changed;
create index concurrently usage_hour_changed on read.usage_hour using brin (changed_position);
drop index concurrently if exists read.tracker_calls_hour_changed;
create index concurrently tracker_calls_hour_changed on read.tracker_calls_hour using brin (changed_position);
drop index concurrently if exists read.tracker_hour_changed;
create index concurrently tracker_hour_changed on read.tracker_hour using brin (changed_position);
