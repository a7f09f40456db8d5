-- Question: Which endpoints fail, and why?
-- Columns: partner, endpoint: their names; outcome: why an attempt failed; http_status: null: no answer; attempts:
--   failed ones of the last seven days; mean_ms: their mean duration; failures_in_row: since the last success
-- Reading: timeout and connect are the receiver's network, http_status is its program. Ten failures in a row: the
--   breaker is open.
select p.name as partner, w.name as endpoint, a.outcome, a.http_status, sum(a.attempts) as attempts,
       round(sum(a.duration_ms) / sum(a.attempts)) as mean_ms, max(w.failures_in_row) as failures_in_row
from analytics.delivery_attempts a
join analytics.webhooks w using (webhook_id) join analytics.partners p on p.partner_id = a.partner_id
where a.outcome <> 'delivered' and a.hour >= now() - interval '7 days'
group by p.name, w.webhook_id, w.name, a.outcome, a.http_status
order by attempts desc, partner, endpoint, a.outcome;
