import { z } from 'zod';
import 'zod-openapi';
import { DAY, hasUsualYear, utcDay } from '../domain/kernel/time.ts';

/** Usage range. */
const LONGEST_DAYS = 31;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

export interface UtcRange {
  /** Midnights, ISO 8601; `from` inclusive, `to` exclusive. */
  readonly from: string;
  readonly to: string;
}

/**
 * The `from` and `to` of a usage query (contract, Usage 1); today by default. null: not a
 * range of real UTC dates, `from` before `to`, of 31 days at most, with nothing twice and nothing else.
 * `now` in milliseconds.
 */
export const utcRange = (query: string, now: number): UtcRange | null => {
  const entries = [...new URLSearchParams(query)];
  const given = new Map(entries);
  if (given.size !== entries.length) return null;
  for (const name of given.keys()) if (name !== 'from' && name !== 'to') return null;
  const tomorrow = utcDay(now + DAY);
  if (!given.has('from') && given.has('to')) return null;
  const from = midnight(given.get('from') ?? utcDay(now));
  const to = midnight(given.get('to') ?? tomorrow);
  if (from === null || to === null) return null;
  const days = (to - from) / DAY;
  return days > 0 && days <= LONGEST_DAYS
    ? { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
    : null;
};

/** Milliseconds of a real date's midnight. */
const midnight = (date: string): number | null => {
  if (!DATE.test(date) || !hasUsualYear(date)) return null;
  const at = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(at) && utcDay(at) === date ? at : null;
};

/** A day of the query: inclusive as `from`, exclusive as `to`. */
const day = z.iso.date().meta({ example: '2026-03-14' });

/** The range of a usage query. */
export const rangeQuery = z.object({
  from: day.optional().meta({ description: 'First day, inclusive, UTC. Alone it runs to the end of today.' }),
  to: day.optional().meta({ description: 'Last day, exclusive, UTC. Needs `from`.' }),
});
