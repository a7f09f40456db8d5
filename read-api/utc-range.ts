import { z } from 'zod';
import 'zod-openapi';
import { DAY, hasUsualYear, utcDay } from '../domain/kernel/time.ts';
import { namedParameters } from './query.ts';

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
export function utcRange(query: string, now: number): UtcRange | null {
  const given = namedParameters(query, ['from', 'to']);
  if (given === null || (given.from === undefined && given.to !== undefined)) return null;
  const from = midnight(given.from ?? utcDay(now));
  const to = midnight(given.to ?? utcDay(now + DAY));
  if (from === null || to === null) return null;
  const days = (to - from) / DAY;
  return days > 0 && days <= LONGEST_DAYS
    ? { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
    : null;
}

/** Milliseconds of a real date's midnight. */
function midnight(date: string): number | null {
  if (!DATE.test(date) || !hasUsualYear(date)) return null;
  const at = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(at) && utcDay(at) === date ? at : null;
}

/** A day of the query: inclusive as `from`, exclusive as `to`. */
const day = z.iso.date().meta({ example: '2026-03-14' });

/** The range of a usage query. */
export const rangeQuery = z.object({
  from: day.optional().meta({ description: 'First day, inclusive, UTC. Alone it runs to the end of today.' }),
  to: day.optional().meta({ description: 'Last day, exclusive, UTC. Needs `from`.' }),
});
