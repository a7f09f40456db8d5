-- Question: In which hours of the last week did lookups fail?
-- Columns: hour: start of the UTC hour; requests: all lookups; errors: outcome error; limited: outcome rate_limited;
--   error_percent: errors of all
-- Reading: Single errors are time-outs. A run of hours with many has an entry in the log and an alert of that time.
select hour, sum(requests) as requests, coalesce(sum(requests) filter (where outcome = 'error'), 0) as errors,
       coalesce(sum(requests) filter (where outcome = 'rate_limited'), 0) as limited,
       round(100.0 * coalesce(sum(requests) filter (where outcome = 'error'), 0) / sum(requests), 2) as error_percent
from analytics.usage_hours
where hour >= now() - interval '7 days'
group by hour having sum(requests) filter (where outcome in ('error', 'rate_limited')) > 0
order by hour desc;
