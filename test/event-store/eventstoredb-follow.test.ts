import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import type { EventStoreDBClient } from '@eventstore/db-client';
import { expect, it, onTestFinished } from 'vitest';
import { follow } from '../../event-store/eventstoredb/follow.ts';
import { eventually } from '../support/eventually.ts';

const EVENTS = 2_000;

const resolved = (n: number, text = '') => ({
  event: {
    id: randomUUID(),
    type: 'Tested',
    streamId: 'tested-1',
    revision: BigInt(n),
    position: { commit: BigInt(n + 1), prepare: BigInt(n + 1) },
    data: { n, text },
    metadata: { at: '2026-11-22T00:00:00.000Z' },
  },
});

/** A subscription that a test writes to, and its follower. */
const subscribed = () => {
  const subscription = new PassThrough({ objectMode: true, highWaterMark: 64 });
  const client = {
    subscribeToAll: () => Object.assign(subscription, { unsubscribe: async () => undefined }),
  };
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const following = follow(
    { client: client as unknown as EventStoreDBClient, now: () => 0, onStall: () => undefined },
    { after: null, signal: ending.signal },
  );
  return { subscription, following };
};

it('takes events off the server while its own follower is busy', async () => {
  const { subscription, following } = subscribed();
  const first = following.next();
  subscription.write(resolved(0));
  expect((await first).value?.events).toHaveLength(1);
  let written = 1;
  const write = (): void => {
    for (let hasRoom = true; written < EVENTS && hasRoom; written += 1)
      hasRoom = subscription.write(resolved(written));
    if (written < EVENTS) subscription.once('drain', write);
  };
  write();
  await eventually('all events were received', () => written === EVENTS && subscription.readableLength === 0);
  const batches: number[] = [];
  while (batches.reduce((sum, n) => sum + n, 1) < EVENTS) {
    batches.push((await following.next()).value?.events.length ?? 0);
  }
  expect(batches).toEqual([500, 500, 500, 499]);
});
