-- What found the intake full is asked for again by turns of partners.
create index awaited_result_left on work.awaited_result (partner_id, reveal_id) where not asked;
drop index work.awaited_result_reveal_id_idx;
