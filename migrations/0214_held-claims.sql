-- No transaction
-- Of the attempts that a provider holds back, of which there may be any number, one is made now and then: of the addresses that
-- failed least the newest.
drop index concurrently if exists work.claim_held;
create index concurrently claim_held on work.claim (held_by, attempt, lease_until desc) where held_by is not null;
