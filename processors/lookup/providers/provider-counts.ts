import type pg from 'pg';
import type { Logger } from 'pino';
import { DAY, isoTime, utcDay } from '../../../domain/kernel/time.ts';
import type { Clock } from '../../../platform/clock/clock.ts';
import { runSoon } from '../../../platform/clock/waiting.ts';
import { SYNCHRONOUS_COMMIT } from '../../../platform/postgres/transactions.ts';
import type { ProviderOutcome } from '../../../platform/telemetry/metrics.ts';

type Counted = Record<ProviderOutcome | 'taken' | 'duration_ms', number>;
/** When it last answered and last failed, ISO 8601. */
interface Times {
  last_answered_at?: string;
  last_failed_at?: string;
}

const FLUSH_MS = 5_000;
const NONE: Counted = {
  company: 0,
  isp: 0,
  unclassified: 0,
  unknown: 0,
  failed: 0,
  not_asked: 0,
  taken: 0,
  duration_ms: 0,
};

/**
 * Counts questions to providers by UTC day, for analysts and `doorplate provider list`. A crash loses the counts of the last
 * seconds.
 */
export function createProviderCounts({
  pool,
  clock,
  log,
}: {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
}) {
  let waiting = new Map<string, Counted & Times & { provider: string; day: string }>();
  const entry = (provider: string): Counted & Times => {
    const day = utcDay(clock.now());
    const key = `${day} ${provider}`;
    const found = waiting.get(key) ?? { ...NONE, provider, day };
    waiting.set(key, found);
    flushing.soon();
    return found;
  };
  const flush = async (): Promise<void> => {
    if (waiting.size === 0) return;
    const rows = [...waiting.values()];
    waiting = new Map();
    await pool
      .query({ name: 'count_providers', text: ADD, values: [JSON.stringify(rows)] })
      .catch((error: Error) => {
        log.warn(
          { error: error.message, rows: rows.length },
          'counts of providers were not saved and are lost',
        );
      });
  };
  const flushing = runSoon(flush, FLUSH_MS);
  return {
    /** Counts a question to a provider. `ms`: duration of the call. */
    asked: (provider: string, outcome: ProviderOutcome, ms: number): void => {
      const counted = entry(provider);
      counted[outcome] += 1;
      if (outcome === 'not_asked') return;
      counted.duration_ms += Math.round(ms);
      counted[outcome === 'failed' ? 'last_failed_at' : 'last_answered_at'] = isoTime(clock.now());
    },
    /** Counts a result whose company is the provider's. */
    taken: (provider: string): void => {
      entry(provider).taken += 1;
    },
    /** Saves at once what was counted since the last save. */
    flush,
    close: async (): Promise<void> => {
      flushing.cancel();
      await flush();
    },
  };
}

export type ProviderCounts = ReturnType<typeof createProviderCounts>;

const COLUMNS = Object.keys(NONE);

/** Sorted, so that the saves of two processes cannot deadlock. */
const ADD = `
  insert into work.provider_day as d (provider, day, last_answered_at, last_failed_at, ${COLUMNS.join(', ')})
  select provider, day, last_answered_at, last_failed_at, ${COLUMNS.map((name) => `coalesce(${name}, 0)`).join(', ')}
  from json_populate_recordset(null::work.provider_day, $1)
  order by provider, day
  on conflict (provider, day) do update set
    last_answered_at = greatest(d.last_answered_at, excluded.last_answered_at),
    last_failed_at = greatest(d.last_failed_at, excluded.last_failed_at),
    ${COLUMNS.map((name) => `${name} = d.${name} + excluded.${name}`).join(', ')}`;

/**
 * Takes one request from a provider's budget of a UTC day, exactly over all processes. `day`: `YYYY-MM-DD`.
 * @returns false if the budget is used up
 */
export async function takeFromBudget(
  pool: pg.Pool,
  provider: string,
  day: string,
  requestsPerDay: number,
): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'take_from_budget',
    text: `insert into work.provider_day as d (provider, day, budget_used)
           select $1, $2::date, 1 from ${SYNCHRONOUS_COMMIT}
           on conflict (provider, day) do update set budget_used = d.budget_used + 1 where d.budget_used < $3`,
    values: [provider, day, requestsPerDay],
  });
  return rowCount === 1;
}

/** Days for which counts are kept, as usage is. */
const KEPT_DAYS = 400;

/** Deletes the counts of days past their retention. `now` in milliseconds. */
export async function forgetProviderDays(pool: pg.Pool, now: number): Promise<void> {
  await pool.query('delete from work.provider_day where day < $1::date', [utcDay(now - KEPT_DAYS * DAY)]);
}
