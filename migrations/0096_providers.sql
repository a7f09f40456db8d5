-- Questions to providers of company data, by UTC day: what budgets are held against, and what operators compare vendors by.
create table work.provider_day (
  provider text not null,
  day date not null,
  budget_used integer not null default 0,
  company bigint not null default 0,
  isp bigint not null default 0,
  unclassified bigint not null default 0,
  unknown bigint not null default 0,
  failed bigint not null default 0,
  not_asked bigint not null default 0,
  taken bigint not null default 0,
  duration_ms bigint not null default 0,
  primary key (provider, day)
);
comment on table work.provider_day is
  'Questions to providers of company data by UTC day. Written by the enrichment attempts; kept for 400 days.';
comment on column work.provider_day.budget_used is 'Requests taken from the budget of the day. Counted only while there is a budget.';
comment on column work.provider_day.unknown is 'Answers that the address is unknown.';
comment on column work.provider_day.not_asked is 'Questions that were held back: by the rate, the budget or the circuit breaker.';
comment on column work.provider_day.taken is 'Results whose company is this provider''s.';
comment on column work.provider_day.duration_ms is 'Sum of the durations of the calls, milliseconds.';

-- Which providers the workers ask, so that a process that asks none knows which saved results are incomplete.
alter table work.process add column providers text[];
comment on column work.process.providers is 'The providers that it asks, in their order; null: it asks none, or is of a release before 0.3.0.';

-- The default is what the release before asked, which writes no such column.
alter table read.saved_lookup add column asked text[] not null default '{directory,http}';
comment on column read.saved_lookup.asked is
  'Providers that answered, those that know nothing too. A POST requests more while one of the configured is missing.';

create view analytics.providers as
select day, provider, company + isp + unclassified + unknown + failed as calls, failed, not_asked, company, isp,
       unclassified, unknown, taken, duration_ms
from work.provider_day where analytics.time_is_limited();
comment on view analytics.providers is
  'Questions to the operator''s providers of company data, a row for each provider and UTC day. Without an address or a partner.';
comment on column analytics.providers.day is 'UTC day.';
comment on column analytics.providers.provider is 'As the operator named it.';
comment on column analytics.providers.calls is 'How often it was called: the sum of the next columns but not_asked.';
comment on column analytics.providers.failed is 'Calls that failed or timed out. They say nothing about the address.';
comment on column analytics.providers.not_asked is 'Questions that were held back by its rate, its budget or its circuit breaker.';
comment on column analytics.providers.company is 'Answers with a company.';
comment on column analytics.providers.isp is 'Answers with an internet provider.';
comment on column analytics.providers.unclassified is 'Answers with neither.';
comment on column analytics.providers.unknown is 'Answers that the address is unknown.';
comment on column analytics.providers.taken is 'Results whose company is this provider''s.';
comment on column analytics.providers.duration_ms is 'Sum of the durations of the calls, milliseconds.';
