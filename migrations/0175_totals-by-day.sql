-- No transaction
-- A script may make and delete endpoints all day, and each with a delivery has totals for 90 days: those past that are found by
-- their day.
drop index concurrently if exists read.webhook_total_by_day;
create index concurrently webhook_total_by_day on read.webhook_total (day, webhook_id);
