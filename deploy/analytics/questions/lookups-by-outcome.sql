-- Question: How do lookups end, day by day?
-- Columns: day: UTC day; outcome: as in docs/reference/data-dictionary.md; requests: how many; saved_percent: answered by a
--   saved result; mean_ms: mean processing time
-- Reading: enqueued and pending should stay small beside company, isp and unclassified. rate_limited: a key asks
--   faster than it may.
select hour::date as day, outcome, sum(requests) as requests,
       round(100.0 * sum(cache_hits) / sum(requests), 1) as saved_percent,
       round(sum(duration_us) / sum(requests) / 1000.0, 2) as mean_ms
from analytics.usage_hours
where hour >= current_date - 30
group by hour::date, outcome order by day desc, requests desc, outcome;
