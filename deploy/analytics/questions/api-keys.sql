-- Question: Which API keys are used, and which could be revoked?
-- Columns: partner, key: their names; created_at; expires_at: null: never; requests: lookups of the last 30 days;
--   last_hour: last hour with a lookup, null: none in 400 days
-- Reading: A key without a lookup may still serve trackers or webhooks: ask its partner. Keys near expires_at need a
--   successor.
select p.name as partner, k.name as key, k.created_at, k.expires_at,
       coalesce(sum(u.requests) filter (where u.hour >= current_date - 30), 0) as requests, max(u.hour) as last_hour
from analytics.api_keys k
join analytics.partners p using (partner_id) left join analytics.usage_hours u on u.key_id = k.key_id
where k.revoked_at is null
group by p.name, k.key_id, k.name, k.created_at, k.expires_at
order by last_hour nulls first, partner, key limit 500;
