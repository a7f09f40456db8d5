-- Question: How long does a delivery take from its event to the receiver's 2xx?
-- Columns: partner, endpoint: their names; delivered: deliveries of the last seven days; median_seconds, p95_seconds:
--   from queueing to delivery; retried_percent: needed more than one attempt
-- Reading: A p95 far above the median comes from retries: look at the endpoint's attempts. Pauses count in.
select p.name as partner, w.name as endpoint, count(*) as delivered,
       percentile_cont(0.5) within group (order by extract(epoch from d.delivered_at - d.created_at)) as median_seconds,
       percentile_cont(0.95) within group (order by extract(epoch from d.delivered_at - d.created_at)) as p95_seconds,
       round(100.0 * count(*) filter (where d.attempts > 1) / count(*), 1) as retried_percent
from analytics.deliveries d
join analytics.webhooks w using (webhook_id) join analytics.partners p on p.partner_id = d.partner_id
where d.delivered_at >= now() - interval '7 days'
group by p.name, w.webhook_id, w.name order by p95_seconds desc, partner, endpoint;
