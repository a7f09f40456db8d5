-- No transaction
-- Sweeps of what has expired take the partners in turn, each from the item that expires first.
drop index concurrently if exists read.session_expiry_of_partner;
create index concurrently session_expiry_of_partner on read.session (partner_id, expires_at, session_id);
drop index concurrently if exists read.reveal_expiry_of_partner;
create index concurrently reveal_expiry_of_partner on read.reveal (partner_id, expires_at, reveal_id);
drop index concurrently if exists read.webhook_payload_expiry_of_partner;
create index concurrently webhook_payload_expiry_of_partner on read.webhook_payload (partner_id, expires_at, event_id);
