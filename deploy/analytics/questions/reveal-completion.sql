-- Question: How long do reveals take to complete, and how many have a company?
-- Columns: day: UTC day of the request; reveals: how many; pending: not completed yet; company_percent: completed
--   ones with a company; median_seconds, p95_seconds: from the request to the result
-- Reading: Seconds that grow are slow providers or a full intake. A reveal of a saved address completes at once.
select created_at::date as day, count(*) as reveals, count(*) filter (where completed_at is null) as pending,
       round(100.0 * count(*) filter (where company_found) / nullif(count(completed_at), 0), 1) as company_percent,
       percentile_cont(0.5) within group (order by extract(epoch from completed_at - created_at)) as median_seconds,
       percentile_cont(0.95) within group (order by extract(epoch from completed_at - created_at)) as p95_seconds
from analytics.reveals
where created_at >= current_date - 30
group by created_at::date order by day desc;
