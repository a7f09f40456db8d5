-- Question: Which enabled trackers have had no request for a week?
-- Columns: partner, tracker: their names; origins: websites that it may run on; created_at: when it was made;
--   last_hour: last hour with a request, null: none in 400 days
-- Reading: A tracker that was never heard has a pixel that is not installed. One that fell silent was removed from
--   its website, or a new origin is missing.
select p.name as partner, t.name as tracker, t.origins, t.created_at, max(h.hour) as last_hour
from analytics.trackers t
join analytics.partners p using (partner_id)
left join analytics.tracker_hours h on h.tracker_id = t.tracker_id and h.capture_requests > 0
where t.disabled_at is null and t.deleted_at is null
group by p.name, t.tracker_id, t.name, t.origins, t.created_at
having coalesce(max(h.hour) < now() - interval '7 days', true)
order by last_hour nulls first, partner, tracker limit 500;
