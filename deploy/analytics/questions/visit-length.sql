-- Question: How long do visits last?
-- Columns: day: UTC day on which they began; visits: sessions; seen_again_percent: those with more than one page
--   view; median_seconds: of those, from the first page view to the last
-- Reading: The last page's reading time is not known, so a visit of one page lasts zero seconds and is left out of
--   the median.
select first_seen_at::date as day, count(*) as visits,
       round(100.0 * count(*) filter (where last_seen_at > first_seen_at) / count(*), 1) as seen_again_percent,
       percentile_cont(0.5) within group (order by extract(epoch from last_seen_at - first_seen_at))
         filter (where last_seen_at > first_seen_at) as median_seconds
from analytics.sessions
group by first_seen_at::date order by day desc;
