-- Question: How many units does each partner pay for in each month of the last year?
-- Columns: month: UTC month; partner: its name; units: what is billed; reveals: completed reveals, billed or not;
--   by_users: reveals that a user of the dashboard asked for
-- Reading: Compare a month with the one before it. The current month is not over. doorplate audit billing proves the
--   sums.
select u.month, p.name as partner, sum(u.units) as units, count(*) as reveals,
       count(*) filter (where u.asked_by = 'user') as by_users
from analytics.units u join analytics.partners p using (partner_id)
where u.completed_at >= date_trunc('month', now()) - interval '11 months'
group by u.month, p.name order by u.month desc, units desc, partner;
