-- Question: What became of the deliveries of the last seven days?
-- Columns: partner, endpoint: their names; state: as in docs/reference/data-dictionary.md; deliveries: how many;
--   oldest_created_at: the oldest of them; attempts: over all of them
-- Reading: pending with an old oldest_created_at: the endpoint is paused or its breaker is open. failed: a recovery
--   makes them due again (docs/webhooks.md).
select p.name as partner, w.name as endpoint, d.state, count(*) as deliveries,
       min(d.created_at) as oldest_created_at, sum(d.attempts) as attempts
from analytics.deliveries d
join analytics.webhooks w using (webhook_id) join analytics.partners p on p.partner_id = d.partner_id
where d.created_at >= now() - interval '7 days'
group by p.name, w.webhook_id, w.name, d.state order by deliveries desc, partner, endpoint, d.state;
