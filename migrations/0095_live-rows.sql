-- No transaction
-- Lists of a partner's trackers and endpoints pass over deleted rows, of which there may be any number.
drop index concurrently if exists read.tracker_live;
create index concurrently tracker_live on read.tracker (partner_id, created_at, tracker_id) where deleted_at is null;
drop index concurrently if exists read.webhook_endpoint_live;
create index concurrently webhook_endpoint_live on read.webhook_endpoint (partner_id, created_at, webhook_id)
  where deleted_at is null;
drop index concurrently if exists read.webhook_health_live;
create index concurrently webhook_health_live on read.webhook_health (partner_id) where deleted_at is null;
