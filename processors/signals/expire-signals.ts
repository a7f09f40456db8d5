import type pg from 'pg';
import type { Logger } from 'pino';
import { DAY, isoTime, MINUTE, utcDay } from '../../domain/kernel/time.ts';
import { KEPT_DAYS, signalsExpireAt, signalsStream } from '../../domain/signals/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Consumers, createPassage } from '../consumers.ts';
import { retireStream } from '../retire-stream.ts';

export interface ExpireSignalsOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly consumers: Consumers;
  /** Told after each run how many days should have been deleted, and for how long the oldest of them. */
  readonly onBlocked: (name: string, days: number, seconds: number) => void;
  /** Ends a run between two days. */
  readonly signal: AbortSignal;
}

interface ExpiredDay {
  readonly day: string;
  readonly last_revision: number;
  readonly last_position: string;
}

/** What is there so long after it expired is told of. */
const OVERDUE = 10 * MINUTE;

/**
 * Deletes the clues of the days that have expired, a day at a time. `forget` drops a day's rows from the read model;
 * until then they say that there is its stream, so that whoever dies in between is completed by the next run.
 */
export const expireSignals = async (
  options: ExpireSignalsOptions,
  forget: (day: string) => Promise<void>,
): Promise<void> => {
  const { store, pool, clock, consumers, signal } = options;
  const consumerProgress = createPassage(pool, consumers);
  const days = await expiredDays(pool, clock.now());
  const left: ExpiredDay[] = [];
  for (const row of days) {
    if (signal.aborted) return;
    const { day, last_revision, last_position } = row;
    const passed = await consumerProgress.passed();
    const known = { stream: signalsStream(day), last_revision, lives: false };
    const isRead = passed !== null && BigInt(last_position) <= passed;
    if (isRead && (await retireStream({ store, consumerProgress, passed, signal }, known))) await forget(day);
    else left.push(row);
  }
  await tellOfBlocked(options, left);
};

/** The last of a day's clues has expired 30 days after the day's end. */
const expiredDays = async (pool: pg.Pool, now: number): Promise<ExpiredDay[]> =>
  (
    await pool.query<ExpiredDay>({
      name: 'expired_signal_days',
      text: `select day::text, last_revision, last_position from read.signal_day where day < $1::date order by day`,
      values: [utcDay(now - KEPT_DAYS * DAY)],
    })
  ).rows;

const tellOfBlocked = async (
  { pool, clock, log, consumers, onBlocked }: ExpireSignalsOptions,
  left: readonly ExpiredDay[],
): Promise<void> => {
  const expiredAt = ({ day }: ExpiredDay): number => Date.parse(signalsExpireAt(day));
  const overdue = left.filter((row) => expiredAt(row) + OVERDUE <= clock.now());
  const [oldest] = overdue;
  onBlocked('signals', overdue.length, oldest ? (clock.now() - expiredAt(oldest)) / 1_000 : 0);
  if (oldest === undefined) return;
  const notPassedBy = await createPassage(pool, consumers).before(BigInt(oldest.last_position));
  log.warn(
    { what: 'signals', rows: overdue.length, oldest: isoTime(expiredAt(oldest)), notPassedBy },
    'expired long ago, and not deleted yet',
  );
};
