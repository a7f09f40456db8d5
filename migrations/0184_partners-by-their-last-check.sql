-- No transaction
-- The partner whose last check is longest ago is next.
drop index concurrently if exists work.domain_look_of_partner;
create index concurrently domain_look_of_partner on work.domain_look (partner_id, looked_at);
