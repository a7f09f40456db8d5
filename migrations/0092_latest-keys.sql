-- No transaction
-- The dashboard lists a partner's keys that are not revoked, and the last that were.
drop index concurrently if exists read.api_key_revoked;
create index concurrently api_key_revoked on read.api_key (partner_id, revoked_at);
