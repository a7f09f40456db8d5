-- No transaction
-- Reservations that interrupted requests left are submitted in turns of their partners.
drop index concurrently if exists read.left_reservation_of_partner;
create index concurrently left_reservation_of_partner on read.reservation (partner_id, made_at) where state = 'reserved';
