-- No transaction
-- Left reservations are found by their partners (0165). Where one partner has most of them, PostgreSQL took this index instead, and
-- read the reservations of all partners once for each.
drop index concurrently if exists read.reservation_made_at_idx;
