-- Question: Which countries do the visitors of each partner come from?
-- Columns: partner: its name; country: ISO 3166-1 alpha-2, estimated from the address; visits: sessions of the last
--   30 days; percent: of the partner's visits
-- Reading: Countries come from IP Geolocation by DB-IP (https://db-ip.com): name it where you show them. Small shares
--   are guesses.
select p.name as partner, coalesce(s.visitor_country, 'unknown') as country, count(*) as visits,
       round(100.0 * count(*) / sum(count(*)) over (partition by p.name), 1) as percent
from analytics.sessions s join analytics.partners p using (partner_id)
group by p.name, 2 order by partner, visits desc, country;
