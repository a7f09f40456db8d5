-- Question: Which companies came back?
-- Columns: partner: its name; company: its name; visits: sessions that were revealed as this company; days: on how
--   many UTC days; last_visit_at: the newest of them
-- Reading: Many days tell of interest, many visits on one day of a long meeting. Only revealed visits are known by
--   company.
select p.name as partner, r.company_name as company, count(distinct s.session_id) as visits,
       count(distinct s.first_seen_at::date) as days, max(s.last_seen_at) as last_visit_at
from analytics.reveals r
join analytics.sessions s using (session_id) join analytics.partners p on p.partner_id = r.partner_id
where r.company_found
group by p.name, r.company_name having count(distinct s.session_id) > 1
order by days desc, visits desc, partner, company limit 500;
