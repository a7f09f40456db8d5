-- Question: What does each provider of company data add, and how does it fail?
-- Columns: day: UTC day; provider: its name; calls: how often it was called; failed_percent: of the calls;
--   company_percent: answers with a company; taken: results whose company is this provider's; not_asked: questions
--   held back by rate, budget or breaker; mean_ms: mean duration
-- Reading: taken far below company_percent: another provider of the chain comes first. Price divided by taken is the
--   price of a company.
select day, provider, calls, round(100.0 * failed / nullif(calls, 0), 1) as failed_percent,
       round(100.0 * company / nullif(calls, 0), 1) as company_percent, taken, not_asked,
       round(duration_ms / nullif(calls, 0)::numeric, 1) as mean_ms
from analytics.providers
where day >= current_date - 30
order by day desc, taken desc, provider;
