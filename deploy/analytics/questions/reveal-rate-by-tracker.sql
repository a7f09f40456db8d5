-- Question: Which trackers turn visits into reveals?
-- Columns: partner, tracker: their names; visits: sessions of the last 30 days; reveals: reveals asked for;
--   revealed_percent: reveals for 100 visits
-- Reading: Over 100 percent: sessions were revealed more than once. Zero: the tracker collects visits that nobody
--   reveals.
select p.name as partner, t.name as tracker, sum(h.sessions) as visits, sum(h.reveals) as reveals,
       round(100.0 * sum(h.reveals) / nullif(sum(h.sessions), 0), 1) as revealed_percent
from analytics.tracker_hours h
join analytics.trackers t using (tracker_id) join analytics.partners p on p.partner_id = t.partner_id
where h.hour >= current_date - 30
group by p.name, t.name order by visits desc, partner, tracker;
