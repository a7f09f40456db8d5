-- No transaction
-- Reveals that wait for one address are marked page by page, past those that are marked.
drop index concurrently if exists work.awaited_result_of_address;
create index concurrently awaited_result_of_address on work.awaited_result (address_digest, reveal_id);
drop index concurrently if exists work.awaited_result_address_digest_idx;
