-- What 0.3.0 adds. Tables and columns that only 0.2.0 uses stay until a later release: its processes may run beside this one.

-- Rates: the sweep finds counts that are older than their window.
alter table work.rate add column window_ms bigint;
comment on column work.rate.window_ms is
  'Length of the window, milliseconds. Two windows after its last use the row is deleted. Null: not used since 0.2.0.';

create or replace function work.take_rate(
  rate_name text, ceiling integer, window_ms bigint, wanted integer, at_ms bigint, unused integer, unused_slot bigint
) returns table (granted integer, granted_slot bigint, retry_ms bigint, was_ahead boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  width bigint := greatest(1, take_rate.window_ms / 10);
  now_slot bigint := at_ms / width;
  held work.rate;
  shift bigint;
  tenth bigint;
  first integer := case when take_rate.window_ms > 1000 then 2 else 1 end;
  total integer := 0;
begin
  insert into work.rate (name, slot, used, window_ms)
    values (rate_name, now_slot, array_fill(0, array[11]), take_rate.window_ms)
    on conflict (name) do nothing;
  select * into held from work.rate where name = rate_name for update;
  -- Slots that lie further ahead than a minute are a wrong clock's: they count as if they were now's.
  was_ahead := held.slot * width > at_ms + 60000;
  if was_ahead then held.slot := now_slot; end if;
  -- A clock that is behind by less counts into the newest slot.
  now_slot := greatest(now_slot, held.slot);
  shift := now_slot - held.slot;
  if shift >= 11 then
    held.used := array_fill(0, array[11]);
  elsif shift > 0 then
    held.used := held.used[shift + 1 : 11] || array_fill(0, array[shift::integer]);
  end if;
  tenth := 11 - (now_slot - unused_slot);
  if unused > 0 and tenth between 1 and 11 then
    held.used[tenth] := greatest(0, held.used[tenth] - unused);
  end if;
  for i in first .. 11 loop total := total + held.used[i]; end loop;
  granted := greatest(0, least(wanted, ceiling - total));
  granted_slot := now_slot;
  retry_ms := 0;
  if granted = 0 then
    retry_ms := take_rate.window_ms;
    for i in first .. 11 loop
      if held.used[i] > 0 then
        retry_ms := (now_slot + i + 1 - first) * width - at_ms;
        exit;
      end if;
    end loop;
  end if;
  held.used[11] := held.used[11] + granted;
  update work.rate set slot = now_slot, used = held.used, window_ms = take_rate.window_ms where name = rate_name;
  return next;
end $$;

-- Providers of company data.
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
alter table read.saved_lookup add column answered_by text[] not null default '{directory,http}';
comment on column read.saved_lookup.answered_by is
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

alter table read.reveal add column company_key text;
comment on column read.reveal.company_key is 'MD5 of the name of the company that was found, in lower case; null: none, or completed before 0.3.0 and not rebuilt.';

alter table read.reservation add column attempts_before integer not null default 0;
comment on column read.reservation.attempts_before is 'Failed attempts of the enrichment from before this reservation joined it.';

alter table work.claim add column held_by text;
comment on column work.claim.held_by is
  'The provider that held the attempt back, which is due again as soon as that provider can be asked; null: the claim is held by its lease.';

comment on column analytics.deliveries.error is 'Why the last attempt failed: an error of docs/webhooks.md; null: it did not, or there was none.';

comment on table work.kept_out is 'Of 0.2.0 alone.';
comment on table work.login_network is 'Of 0.2.0 alone.';
