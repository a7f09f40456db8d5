-- No transaction
-- An audit reads the unswept reveals of one partner by pages, past those of all others.
drop index concurrently if exists read.reveal_of_partner;
create index concurrently reveal_of_partner on read.reveal (partner_id, reveal_id);
