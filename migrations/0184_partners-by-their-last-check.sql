-- Up Migration
-- The partner whose last check is longest ago is next.
create index on work.domain_look (partner_id, looked_at);
