-- Question: Which industries do the revealed companies belong to?
-- Columns: partner: its name; industry: of the company; companies: different names; reveals: how many; percent: of
--   the partner's reveals with a company
-- Reading: unknown: the provider told no industry. A large share of it is a question for the provider.
select p.name as partner, coalesce(r.industry, 'unknown') as industry, count(distinct r.company_name) as companies,
       count(*) as reveals, round(100.0 * count(*) / sum(count(*)) over (partition by p.name), 1) as percent
from analytics.reveals r join analytics.partners p using (partner_id)
where r.company_found
group by p.name, 2 order by partner, reveals desc, industry;
