import type pg from 'pg';
import { v7 as uuid } from 'uuid';
import { totalUsage } from '../../commands/usage/total-usage.ts';
import { DAY, HOUR, utcDay } from '../../domain/kernel/time.ts';
import { trackerDayStream } from '../../domain/usage/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { eachAlone } from '../each-alone.ts';

export interface UsageUpkeepOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
}

/** Retention of usage (architecture, Streams). */
const USAGE_DAYS = 400;
const MAX_STREAMS_PER_RUN = 100;

/** Closes the usage streams of past days, from an hour after midnight, when no process writes to them any more. */
export const closeUsageStreams = async ({ store, pool, clock }: UsageUpkeepOptions): Promise<void> => {
  const { rows } = await pool.query<{ source: string }>(
    // Days of trackers are closed by `closeTrackerDays` and hold no counts to total.
    `select source from read.usage_source
     where day < $1::date and not totalled and not source ^@ '${trackerDayStream('')}' order by day limit ${MAX_STREAMS_PER_RUN}`,
    [utcDay(clock.now() - HOUR)],
  );
  await eachAlone(rows, async ({ source }) => {
    const id = uuid();
    await totalUsage(store, source, { correlationId: id, causationId: id, at: clock.now() });
  });
};

/** Deletes usage streams past their retention. `forget` drops their rows from the read model. */
export const expireUsageStreams = async (
  { store, pool, clock }: UsageUpkeepOptions,
  forget: (before: string) => Promise<void>,
): Promise<void> => {
  const before = utcDay(clock.now() - USAGE_DAYS * DAY);
  const { rows } = await pool.query<{ source: string }>(
    'select source from read.usage_source where day < $1::date',
    [before],
  );
  await eachAlone(rows, async ({ source }) => {
    for await (const last of store.readStream(source, { direction: 'backwards', limit: 1 })) {
      await store.expire(source, last.revision);
    }
  });
  await forget(before);
};
