import { expect, it } from 'vitest';
import type { EventStore, Position } from '../../event-store/port.ts';
import { retireStream } from '../../processors/retire-streams.ts';
import { mostBetweenTurns } from '../support/between-turns.ts';
import { manualClock } from '../support/manual-clock.ts';

it('passes over any number of expired events before one that lives, and lets others in meanwhile', async () => {
  const clock = manualClock();
  const expiring = (ms: number) => ({ expires_at: new Date(clock.now() + ms).toISOString() });
  const truncated: number[] = [];
  let read = 0;
  const store = {
    head: async () => 2_000n as Position,
    readStream: async function* () {
      for (let revision = 0; revision < 2_000; revision += 1) {
        read += 1;
        yield { revision, position: BigInt(revision), metadata: expiring(revision < 1_500 ? -1 : 1_000) };
      }
    },
    truncateBefore: async (_stream: string, revision: number) => void truncated.push(revision),
  } as unknown as EventStore;
  const most = mostBetweenTurns(() => read);
  const done = await retireStream(
    {
      store,
      consumerProgress: { passed: async () => null, before: async () => [], waitFor: async () => true },
      passed: 2_000n as Position,
      clock,
      signal: new AbortController().signal,
    },
    { stream: 'tab-of-a-million', last_revision: 1_999, lives: true },
  );
  expect(done).toBe(true);
  expect(truncated).toEqual([1_500]);
  expect(most()).toBeLessThanOrEqual(100);
});
