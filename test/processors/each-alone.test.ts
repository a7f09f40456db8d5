import { expect, it } from 'vitest';
import { type EventStore, StoreBusy } from '../../event-store/port.ts';
import { forEachIsolated } from '../../processors/for-each.ts';
import { truncateIntakes } from '../../processors/lookup/settle-reservations.ts';
import { manualClock } from '../support/manual-clock.ts';

it('does the work of those after one that fails, and fails in the end', async () => {
  const done: number[] = [];
  const work = async (n: number) => {
    if (n === 1) throw new StoreBusy('refused 12 times in a row');
    done.push(n);
  };
  await expect(forEachIsolated([0, 1, 2], work)).rejects.toThrow(StoreBusy);
  expect(done).toEqual([0, 2]);
});

it('a partner whose stream cannot be read keeps the intakes of others from no truncation', async () => {
  const read: string[] = [];
  const readStream: EventStore['readStream'] = async function* (stream) {
    read.push(stream);
    if (stream.endsWith('-busy')) throw new StoreBusy('no turn');
    yield* [];
  };
  const store = { readStream } as EventStore;
  const pool = { query: async () => ({ rows: [{ partner_id: 'busy' }, { partner_id: 'quiet' }] }) };
  const work = truncateIntakes({ store, pool: pool as never, clock: manualClock() });
  await expect(work).rejects.toThrow(StoreBusy);
  expect(read.some((stream) => stream.endsWith('-quiet'))).toBe(true);
});
