-- Question: How many visits does each partner have a day?
-- Columns: day: UTC day; partner: its name; visits: sessions that began; capture_requests: requests of its pixels,
--   those of crawlers too; reveals: reveals that were asked for
-- Reading: Many requests and few visits: crawlers, or pages that send each view again. A day without a row has no
--   visit.
select h.hour::date as day, p.name as partner, sum(h.sessions) as visits,
       sum(h.capture_requests) as capture_requests, sum(h.reveals) as reveals
from analytics.tracker_hours h join analytics.partners p using (partner_id)
where h.hour >= current_date - 30
group by h.hour::date, p.name order by day desc, visits desc, partner;
