-- No transaction
-- Reveals whose results have arrived are completed by turns of partners, page by page.
drop index concurrently if exists work.awaited_result_ready;
create index concurrently awaited_result_ready on work.awaited_result (partner_id, reveal_id) where ready;
drop index concurrently if exists work.awaited_result_partner_id_idx;
