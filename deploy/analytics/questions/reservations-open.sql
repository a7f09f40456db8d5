-- Question: Which enrichments wait, and for how long?
-- Columns: partner: its name; kind: first, refresh or completion; state: reserved or submitted; open: how many;
--   oldest_made_at: the oldest of them; pending_limit: the largest limit of the partner's keys
-- Reading: An oldest of many hours: a provider fails or its budget is spent. Many open beside a low limit: new
--   requests will be refused.
select p.name as partner, r.kind, r.state, count(*) as open, min(r.made_at) as oldest_made_at,
       (select max(k.pending_enrichments) from analytics.api_keys k
        where k.partner_id = r.partner_id and k.revoked_at is null) as pending_limit
from analytics.reservations r join analytics.partners p using (partner_id)
where r.ended_at is null
group by p.name, r.partner_id, r.kind, r.state order by oldest_made_at, partner;
