-- No transaction
-- One partner may leave millions of reveals of one address: those that wait are found past those whose result has arrived,
-- and those that have not expired past those that have.
drop index concurrently if exists work.awaited_result_waiting;
create index concurrently awaited_result_waiting on work.awaited_result (address_digest, reveal_id) where not ready;
drop index concurrently if exists work.awaited_result_unasked;
create index concurrently awaited_result_unasked on work.awaited_result (partner_id, expires_at, reveal_id) where not asked;
