-- No transaction
-- A claim looks for those of its endpoint and its deliveries. By their leases it read those of all endpoints, dead rows too.
drop index concurrently if exists work.delivery_claim_lease_until_idx;
