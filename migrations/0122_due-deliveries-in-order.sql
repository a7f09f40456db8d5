-- No transaction
-- A walk over due deliveries continues between deliveries that are due at the same instant.
drop index concurrently if exists read.webhook_delivery_due;
create index concurrently webhook_delivery_due on read.webhook_delivery (webhook_id, next_attempt_at, delivery_id)
  where state = 'pending';
drop index concurrently if exists read.webhook_delivery_webhook_id_next_attempt_at_idx;
