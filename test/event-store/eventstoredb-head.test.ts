import type { EventStoreDBClient } from '@eventstore/db-client';
import { expect, it } from 'vitest';
import { createReader } from '../../event-store/eventstoredb/read.ts';

const TOMBSTONES = 2_000;

/** The log from its end: tombstones, as a sweep writes them, then an event. */
const typeAt = (position: number): string => (position > 1 ? '$streamDeleted' : 'tested.Tested.v1');

interface Asked {
  readonly fromPosition: { readonly commit: bigint } | 'end';
  readonly maxCount: number;
}

it('finds the head behind many events of the server in few reads', async () => {
  const asked: number[] = [];
  const client = {
    readAll: ({ fromPosition, maxCount }: Asked) => {
      asked.push(maxCount);
      const end = typeof fromPosition === 'string' ? TOMBSTONES + 2 : Number(fromPosition.commit);
      const positions = Array.from({ length: maxCount }, (_, n) => end - 1 - n).filter((n) => n > 0);
      const events = positions.map((n) => ({
        event: {
          type: typeAt(n),
          streamId: `tested-${n}`,
          position: { commit: BigInt(n), prepare: BigInt(n) },
        },
      }));
      return (async function* () {
        yield* events;
      })();
    },
  } as unknown as EventStoreDBClient;
  const reader = createReader(client, () => 0, 1_000, new AbortController().signal);
  expect(await reader.head()).toBe(1n);
  expect(asked.length).toBeLessThanOrEqual(11);
  expect(asked[0]).toBe(4);
  expect(Math.max(...asked)).toBe(256);
});
