import type pg from 'pg';
import { NIL } from 'uuid';
import { ownContext } from '../../commands/handle.ts';
import { closeTrackerDay, reopenTrackerDay, totalUsage } from '../../commands/usage/close-usage.ts';
import { aheadAfter, DAY, HOUR, utcDay } from '../../domain/kernel/time.ts';
import { type TrackerHour, trackerDayStream } from '../../domain/usage/events.ts';
import { reportFutureTime } from '../../platform/clock/clock.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import type { ProcessorDeps } from '../deps.ts';
import { forEachIsolated } from '../for-each.ts';

/** Retention of usage (docs/architecture.md, Rules of the streams). */
const USAGE_DAYS = 400;
const MAX_STREAMS_PER_RUN = 100;

/** Closes the usage streams of past days, from an hour after midnight, when no process writes to them any more. */
export async function closeUsageStreams({ store, pool, clock }: ProcessorDeps): Promise<void> {
  const { rows } = await pool.query<{ source: string }>(
    // Days of trackers are closed by `closeTrackerDays` and hold no counts to total.
    `select source from read.usage_source
     where day < $1::date and not totalled and not source ^@ '${trackerDayStream('')}' order by day limit ${MAX_STREAMS_PER_RUN}`,
    [utcDay(clock.now() - HOUR)],
  );
  await forEachIsolated(rows, async ({ source }) => {
    await totalUsage(store, source, ownContext(clock));
  });
}

/** Deletes usage streams past their retention. `forget` drops their rows from the read model. */
export async function expireUsageStreams(
  { store, pool, clock }: ProcessorDeps,
  forget: (before: string) => Promise<void>,
): Promise<void> {
  const before = utcDay(clock.now() - USAGE_DAYS * DAY);
  const { rows } = await pool.query<{ source: string }>(
    'select source from read.usage_source where day < $1::date',
    [before],
  );
  await forEachIsolated(rows, async ({ source }) => {
    for await (const last of store.readStream(source, { direction: 'backwards', limit: 1 })) {
      await store.expire(source, last.revision);
    }
  });
  await forget(before);
}

interface CloseTrackerDaysOptions extends ProcessorDeps {
  /** Waits until the read model reaches the current head of the store; false after a time limit. */
  readonly waitForHead: () => Promise<boolean>;
}

/** Rows per statement: a day may have millions, more than a query may take. */
const PAGE = 5_000;

const CLOSED = `source ^@ '${trackerDayStream('')}' and totalled`;

/**
 * Returns the first day that is not closed (`YYYY-MM-DD`), or null if none is closed. Days that a fast clock closed
 * too early count as open.
 */
export async function trackerDaysClosedBefore({
  pool,
  clock,
}: Pick<ProcessorDeps, 'pool' | 'clock'>): Promise<string | null> {
  const { rows } = await pool.query<{ day: string | null }>(
    `select (max(day) + 1)::text as day from read.usage_source where ${CLOSED} and (closed_at is null or closed_at <= $1)`,
    [new Date(aheadAfter(clock.now()))],
  );
  return rows[0]?.day ?? null;
}

/**
 * Closes past days, oldest first, from an hour after midnight: records how many sessions and reveals began on each
 * tracker, because the counts outlive both (architecture, rule 10).
 */
export async function closeTrackerDays(options: CloseTrackerDaysOptions): Promise<void> {
  const { store, pool, clock, waitForHead } = options;
  const today = utcDay(clock.now() - HOUR);
  if (!(await waitForHead())) return;
  if ((await reopenDaysClosedAhead(options)) && !(await waitForHead())) return;
  let day = (await trackerDaysClosedBefore(options)) ?? (await firstDay(options));
  while (day !== null && day < today) {
    const counts = await Array.fromAsync(throttled(countsOf(pool, day), PAGE));
    await closeTrackerDay(store, day, counts, ownContext(clock));
    day = dayAfter(day);
  }
}

/** Yields a day's counts, in the order in which a closing that was killed has begun to write them. */
async function* countsOf(pool: pg.Pool, day: string): AsyncGenerator<TrackerHour> {
  for (let after: readonly [string, string] = [NIL, day]; ; ) {
    const { rows } = await pool.query<{ count: TrackerHour }>(
      `select json_build_array(tracker_id, to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24'), sessions, reveals)
              as count
       from read.tracker_hour
       where hour >= $1::timestamptz and hour < $2::timestamptz and (tracker_id, hour) > ($3::uuid, $4::timestamptz)
       order by tracker_id, hour limit ${PAGE}`,
      [day, dayAfter(day), ...after],
    );
    for (const { count } of rows) yield count;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = [last.count[0], `${last.count[1]}:00:00Z`];
  }
}

/** Reopens days that a fast clock closed before their end. @returns whether there were any */
async function reopenDaysClosedAhead({ store, pool, clock }: ProcessorDeps): Promise<boolean> {
  const { rows } = await pool.query<{ day: string }>(
    `select day::text from read.usage_source where ${CLOSED} and closed_at > $1 order by usage_source.day`,
    [new Date(aheadAfter(clock.now()))],
  );
  for (const { day } of rows) {
    await reopenTrackerDay(store, day, ownContext(clock));
  }
  reportFutureTime('usage_day', rows.length);
  return rows.length > 0;
}

async function firstDay({ pool }: ProcessorDeps): Promise<string | null> {
  const { rows } = await pool.query<{ day: string | null }>(
    `select to_char(min(hour) at time zone 'UTC', 'YYYY-MM-DD') as day from read.tracker_hour`,
  );
  return rows[0]?.day ?? null;
}

const dayAfter = (day: string): string => utcDay(Date.parse(day) + DAY);
