-- Question: What does each partner use?
-- Columns: partner: its name; created_at; trackers, keys: live ones; lookups, visits: of the last 30 days; units: of
--   the current UTC month
-- Reading: A partner with trackers and no visits has not installed its pixel. One with neither lookups nor visits has
--   left.
select p.name as partner, p.created_at,
       (select count(*) from analytics.trackers t where t.partner_id = p.partner_id and t.deleted_at is null) as trackers,
       (select count(*) from analytics.api_keys k where k.partner_id = p.partner_id and k.revoked_at is null) as keys,
       coalesce(l.lookups, 0) as lookups, coalesce(v.visits, 0) as visits, coalesce(u.units, 0) as units
from analytics.partners p
left join (select partner_id, sum(requests) as lookups from analytics.usage_hours
           where hour >= current_date - 30 group by partner_id) l using (partner_id)
left join (select partner_id, sum(sessions) as visits from analytics.tracker_hours
           where hour >= current_date - 30 group by partner_id) v using (partner_id)
left join (select partner_id, sum(units) as units from analytics.units
           where completed_at >= date_trunc('month', now()) group by partner_id) u using (partner_id)
order by units desc, lookups desc, partner limit 1000;
