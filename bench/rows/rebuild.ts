import type { Runtime } from '../../bin/runtime.ts';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import type { EventStore } from '../../event-store/port.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import type { Line, Row } from '../support/bench.ts';
import { appendMixedEvents } from '../support/events.ts';
import { withRuntime } from '../support/product.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';

const MOST_ROUNDS = 3;
const BATCH = 2_000;

/**
 * Rebuilds all read models in one pass from a log of mixed events, against reading the same log to its end and doing
 * nothing with it: events a second. No service runs meanwhile.
 */
export const rebuildRow: Row = {
  name: 'rebuild',
  run: async ({ effort, say }) => {
    const folder = makeTestFolder();
    try {
      return await withRuntime({ DATA_DIR: folder }, 'own', async (runtime) => {
        say(`appending ${effort.events} events`);
        const events = await appendMixedEvents(runtime.store, effort.events);
        return [await measure(runtime, events, Math.min(effort.rounds, MOST_ROUNDS))];
      });
    } finally {
      await removeDataFolder(folder);
    }
  },
};

const measure = async (
  { store, databaseUrl: url }: Runtime,
  events: number,
  rounds: number,
): Promise<Line> => {
  const { a, b } = await alternate(
    rounds,
    () => perSecond(events, async () => (await rebuild({ store, url, projections: allProjections })).events),
    () => perSecond(events, () => readAll(store)),
  );
  return {
    row: 'projection rebuild',
    ratio: medianRatio(a, b),
    target: { atLeast: 0.5 },
    a: { of: 'all read models, one pass', value: median(a), unit: ' events/s' },
    b: { of: 'reading the same events', value: median(b), unit: ' events/s' },
    notes: [`${events} events`],
  };
};

const readAll = async (store: EventStore): Promise<number> => {
  const head = await store.head();
  const done = new AbortController();
  let events = 0;
  for await (const batch of store.follow({ after: null, batchSize: BATCH, signal: done.signal })) {
    events += batch.events.length;
    if (head === null || batch.position >= head) break;
  }
  done.abort();
  return events;
};

const perSecond = async (expected: number, pass: () => Promise<number>): Promise<number> => {
  const begin = performance.now();
  const events = await pass();
  if (events !== expected) throw new Error(`${events} events were read, and ${expected} had been appended`);
  return (events * 1_000) / (performance.now() - begin);
};
