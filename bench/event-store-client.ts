/**
 * `EVENTSTORE_URL=esdb://… node bench/event-store-client.ts [seconds]`: CPU of the client, in turns, of an append of one event of 400
 * bytes to a new stream at 64 callers, and of an event that a subscription reads, by our adapter and by `@eventstore/db-client`, one
 * call an append.
 */
import { randomUUID } from 'node:crypto';
import { EventStoreDBClient, jsonEvent, START } from '@eventstore/db-client';
import { createEventStoreDb } from '../event-store/eventstoredb/store.ts';
import type { NewEvent } from '../event-store/port.ts';
import { median } from './support/statistics.ts';

const CALLERS = 64;
const ROUNDS = 3;
const READ_EVENTS = 30_000;
const url = process.env.EVENTSTORE_URL ?? '';
const seconds = Number(process.argv[2] ?? 5);

const store = createEventStoreDb({ url, now: Date.now });
const client = EventStoreDBClient.connectionString(url);
// With credentials the client makes one call an append; its other path shares one table with every other client of a process.
const credentials = { username: 'admin', password: 'changeit' };

const newEvent = (): NewEvent => ({
  id: randomUUID(),
  type: 'bench.Appended.v1',
  data: { text: 'x'.repeat(200), n: 1, list: [1, 2, 3] },
  metadata: { $correlationId: randomUUID(), $causationId: randomUUID(), at: new Date().toISOString() },
});

interface Measured {
  readonly perSecond: number;
  readonly micros: number;
}

/** CPU of this process, and the rate, of what the work counts. */
const measure = async (work: () => Promise<number>): Promise<Measured> => {
  const [began, before] = [performance.now(), process.cpuUsage()];
  const done = await work();
  const { user, system } = process.cpuUsage(before);
  return { perSecond: done / ((performance.now() - began) / 1_000), micros: (user + system) / done };
};

const appends = (append: (event: NewEvent) => Promise<unknown>) => async (): Promise<number> => {
  const until = performance.now() + seconds * 1_000;
  let done = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < until) {
      await append(newEvent());
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return done;
};

const SIDES: Record<string, readonly [ours: () => Promise<number>, theirs: () => Promise<number>]> = {
  'append, 64 callers': [
    appends((event) => store.append(`bench-${event.id}`, 'no_stream', [event])),
    appends(({ id, type, data, metadata }) =>
      client.appendToStream(
        `bench-${id}`,
        [jsonEvent({ id, type, data: { ...data }, metadata: { ...metadata } })],
        { expectedRevision: 'no_stream', credentials },
      ),
    ),
  ],
  'event read by subscription': [
    async () => {
      let read = 0;
      for await (const { events } of store.follow({ after: null, signal: new AbortController().signal })) {
        read += events.length;
        if (read >= READ_EVENTS) break;
      }
      return read;
    },
    async () => {
      let read = 0;
      const subscription = client.subscribeToAll({ fromPosition: START });
      for await (const { event } of subscription) {
        if (event && !event.type.startsWith('$')) read += 1;
        if (read >= READ_EVENTS) break;
      }
      await subscription.unsubscribe();
      return read;
    },
  ],
};

for (const [name, sides] of Object.entries(SIDES)) {
  const measured: [Measured[], Measured[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [side, work] of sides.entries()) {
      const result = await measure(work);
      // The first round warms up.
      if (round > 0) measured[side]?.push(result);
    }
  }
  const [ours, theirs] = measured.map((list) => ({
    micros: median(list.map(({ micros }) => micros)),
    perSecond: median(list.map(({ perSecond }) => perSecond)),
  }));
  if (ours && theirs)
    process.stdout.write(
      `${name}: ${ours.micros.toFixed(1)} µs to ${theirs.micros.toFixed(1)} µs, ratio ${(ours.micros / theirs.micros).toFixed(2)}; ` +
        `${ours.perSecond.toFixed(0)}/s to ${theirs.perSecond.toFixed(0)}/s\n`,
    );
}
await store.close();
await client.dispose();
