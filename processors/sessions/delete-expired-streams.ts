import type pg from 'pg';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Consumers, createPassage } from '../consumers.ts';

export interface DeleteExpiredStreamsOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly consumers: Consumers;
}

/** Decisions, "Sessions and reveals": so long what expired is told as gone. */
const TOLD_DAYS = 60;

/**
 * Deletes what told of sessions and receipts that are told of no more. `forget` drops their rows from the read models;
 * until then they say which streams there are.
 */
export const deleteExpiredStreams = async (
  { store, pool, clock, consumers }: DeleteExpiredStreamsOptions,
  forget: (before: string) => Promise<void>,
): Promise<void> => {
  // What was swept on a day had expired by its end.
  const before = utcDay(clock.now() - TOLD_DAYS * DAY);
  const consumerProgress = createPassage(pool, consumers);
  const { signal } = new AbortController();
  const { rows } = await pool.query<{ partner_id: string; day: string }>(
    `select partner_id, day::text from read.expired_session where day < $1::date
     union select partner_id, day::text from read.expired_reveal where day < $1::date`,
    [before],
  );
  for (const { partner_id, day } of rows) {
    const stream = expiredStream(partner_id, day);
    for await (const last of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
      if (!(await consumerProgress.come(last.position, signal)))
        throw new Error(`${stream} has not been read by all`);
      await store.expire(stream, last.revision);
    }
  }
  await forget(before);
};
