-- No transaction
-- Conditions are read every 15 seconds: keys that expire and domains that ceased to point here are found past all others.
drop index concurrently if exists read.api_key_expiring;
create index concurrently api_key_expiring on read.api_key (expires_at) where revoked_at is null and expires_at is not null;
drop index concurrently if exists read.domain_with_error;
create index concurrently domain_with_error on read.domain (partner_id, hostname) where activated_at is not null and last_error is not null;
comment on table work.operator_condition is
  'What holds now of the conditions that the operator''s webhook tells. Written by its jobs, deleted when it ends.';
comment on column work.operator_condition.about is 'The subject: an endpoint, a consumer, a domain, a key and its day …';
