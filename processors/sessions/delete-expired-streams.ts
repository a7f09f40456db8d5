import type pg from 'pg';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';

export interface DeleteExpiredStreamsOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly consumers: Consumers;
}

/** How long the API answers that an id has expired. */
const EXPIRED_ID_DAYS = 60;

/**
 * Deletes the streams of expiry events that are older than 60 days. `forget` drops their rows from the read models; until
 * then a repeated run finds the streams again.
 */
export const deleteExpiredStreams = async (
  { store, pool, clock, consumers }: DeleteExpiredStreamsOptions,
  forget: (before: string) => Promise<void>,
): Promise<void> => {
  // Everything swept on a day had expired by the end of that day.
  const before = utcDay(clock.now() - EXPIRED_ID_DAYS * DAY);
  const consumerProgress = createConsumerProgress(pool, consumers);
  const { signal } = new AbortController();
  const { rows } = await pool.query<{ partner_id: string; day: string }>(
    `${daysIn('read.expired_session')} union ${daysIn('read.expired_reveal')}`,
    [before],
  );
  for (const { partner_id, day } of rows) {
    const stream = expiredStream(partner_id, day);
    for await (const last of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
      if (!(await consumerProgress.waitFor(last.position, signal)))
        throw new Error(`${stream} has not been read by all consumers`);
      await store.expire(stream, last.revision);
    }
  }
  await forget(before);
};

/** Selects the days before `$1` and their partners by steps along the index, because a day may have millions of ids. */
const daysIn = (table: 'read.expired_session' | 'read.expired_reveal'): string => `(
  with recursive known as (
    (select day, partner_id from ${table} where day < $1::date order by day, partner_id limit 1)
    union all
    select next.* from known, lateral (
      select t.day, t.partner_id from ${table} t
      where (t.day, t.partner_id) > (known.day, known.partner_id) and t.day < $1::date
      order by t.day, t.partner_id limit 1) next)
  select partner_id, day::text from known)`;
