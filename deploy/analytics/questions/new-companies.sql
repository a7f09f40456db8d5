-- Question: Which companies did each partner reveal for the first time in the last seven days?
-- Columns: partner: its name; company: its name; industry; first_revealed_at: the first reveal; reveals: how many
--   since then
-- Reading: Receipts are kept for 30 days, so a company of two months ago counts as new.
select p.name as partner, r.company_name as company, max(r.industry) as industry,
       min(r.created_at) as first_revealed_at, count(*) as reveals
from analytics.reveals r join analytics.partners p using (partner_id)
where r.company_found
group by p.name, r.company_name having min(r.created_at) >= now() - interval '7 days'
order by first_revealed_at desc, partner, company limit 500;
