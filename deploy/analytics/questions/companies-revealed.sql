-- Question: Which companies were revealed most in the last 30 days?
-- Columns: company: its name; website; industry; country: of the company; reveals: how many; partners: how many
--   partners revealed it
-- Reading: A company that several partners reveal is a candidate for a better profile. The same company may stand
--   here under two names.
select company_name as company, max(company_website) as website, max(industry) as industry,
       max(country_code) as country, count(*) as reveals, count(distinct partner_id) as partners
from analytics.reveals
where company_found and created_at >= now() - interval '30 days'
group by company_name order by reveals desc, company limit 100;
