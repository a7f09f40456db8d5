-- No transaction
-- A year of usage is millions of rows, of which those past their retention are deleted.
drop index concurrently if exists read.usage_hour_by_age;
create index concurrently usage_hour_by_age on read.usage_hour (hour);
drop index concurrently if exists read.usage_source_by_age;
create index concurrently usage_source_by_age on read.usage_source (day);
