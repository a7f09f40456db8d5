-- No transaction
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
