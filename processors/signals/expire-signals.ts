import type pg from 'pg';
import type { Logger } from 'pino';
import { DAY, isoTime, MINUTE, utcDay } from '../../domain/kernel/time.ts';
import { KEPT_DAYS, signalsExpireAt, signalsStream } from '../../domain/signals/events.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';
import type { ProcessorDeps } from '../deps.ts';
import { retireStream } from '../retire-streams.ts';

export interface ExpireSignalsOptions extends ProcessorDeps {
  readonly log: Logger;
  readonly consumers: Consumers;
  /** Called after each run with the number of overdue days and the age of the oldest, in seconds. */
  readonly onBlocked: (name: string, days: number, seconds: number) => void;
  readonly signal: AbortSignal;
}

interface ExpiredDay {
  readonly day: string;
  readonly generation: number;
  readonly last_revision: number;
  readonly last_position: string;
}

/** Days still present so long after their expiry are reported. */
const OVERDUE_MS = 10 * MINUTE;

/**
 * Deletes the signals of expired days, one day at a time. `forget` drops a day's rows from the read model; until then the
 * rows name the stream, so the next run completes an interrupted one.
 */
export async function expireSignals(
  options: ExpireSignalsOptions,
  forget: (day: string) => Promise<void>,
): Promise<void> {
  const { store, pool, clock, consumers, signal } = options;
  const consumerProgress = createConsumerProgress(pool, consumers);
  const days = await expiredDays(pool, clock.now());
  const left: ExpiredDay[] = [];
  for (const row of days) {
    if (signal.aborted) return;
    const passed = await consumerProgress.passed();
    const isRead = passed !== null && BigInt(row.last_position) <= passed;
    if (isRead && (await retireDay({ store, consumerProgress, passed, clock, signal }, row)))
      await forget(row.day);
    else left.push(row);
  }
  await reportBlocked(options, left);
}

/** Deletes the day's stream, and those before it that an interrupted erasure has left. */
async function retireDay(
  deps: Parameters<typeof retireStream>[0],
  { day, generation, last_revision }: ExpiredDay,
): Promise<boolean> {
  for (let number = 0; number < generation; number += 1) {
    if (!(await retireStream(deps, { stream: signalsStream(day, number), last_revision: 0, lives: false })))
      return false;
  }
  return retireStream(deps, { stream: signalsStream(day, generation), last_revision, lives: false });
}

/** A day expires 30 days after its end, with its last signal. */
const expiredDays = async (pool: pg.Pool, now: number): Promise<ExpiredDay[]> =>
  (
    await pool.query<ExpiredDay>({
      name: 'expired_signal_days',
      text: `select day::text, generation, last_revision, last_position from read.signal_day where day < $1::date order by day`,
      values: [utcDay(now - KEPT_DAYS * DAY)],
    })
  ).rows;

async function reportBlocked(
  { pool, clock, log, consumers, onBlocked }: ExpireSignalsOptions,
  left: readonly ExpiredDay[],
): Promise<void> {
  const expiredAt = ({ day }: ExpiredDay): number => Date.parse(signalsExpireAt(day));
  const overdue = left.filter((row) => expiredAt(row) + OVERDUE_MS <= clock.now());
  const [oldest] = overdue;
  onBlocked('signals', overdue.length, oldest ? (clock.now() - expiredAt(oldest)) / 1_000 : 0);
  if (oldest === undefined) return;
  const notPassedBy = await createConsumerProgress(pool, consumers).before(BigInt(oldest.last_position));
  log.warn(
    { what: 'signals', rows: overdue.length, oldest: isoTime(expiredAt(oldest)), notPassedBy },
    'expired items are not deleted yet; the next run retries',
  );
}
