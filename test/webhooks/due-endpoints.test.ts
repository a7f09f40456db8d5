import type pg from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { findDueEndpoints, type Watched } from '../../processors/webhooks/delivery/due-endpoints.ts';
import { insertEndpoint, insertPendingDeliveries } from '../support/pending-deliveries.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** Adds an endpoint whose pending deliveries were recorded at `recordedAt` and are due an hour later. */
const endpoint = async ({ pending, recordedAt = NOW - MINUTE }: { pending: number; recordedAt?: number }) => {
  const added = await insertEndpoint(stack.pool, pending);
  await insertPendingDeliveries(stack.pool, added, { count: pending, recordedAt, dueAt: recordedAt + HOUR });
  return added.webhookId;
};

it('finds the endpoints to poll without reading the deliveries that wait for a retry', async () => {
  const [ofFastClock, first] = [
    await endpoint({ pending: 1, recordedAt: NOW + HOUR }),
    await endpoint({ pending: 5_000 }),
  ];
  for (let more = 0; more < 3; more += 1) await endpoint({ pending: 5_000 });
  await stack.rows('analyze read.webhook_delivery');
  let read = 0;
  const explained = {
    query: async ({ text, values }: { text: string; values: unknown[] }) => {
      read = rowsRead(await planOf(stack.pool, text, values), 'webhook_delivery');
      return stack.pool.query(text, values);
    },
  } as unknown as pg.Pool;
  const scheduled = new Map<string, number>();
  const polled = Promise.withResolvers<Watched>();
  const dueEndpoints = findDueEndpoints({
    pool: explained,
    clock: { now: () => NOW },
    log: stack.log,
    schedule: (webhookId, _partnerId, at) => void scheduled.set(webhookId, at),
    onWatched: polled.resolve,
  });
  onTestFinished(dueEndpoints.stop);
  expect(await polled.promise).toEqual({ accepting: 5, breakerOpen: 0, paused: 0, oldestDueMs: 0 });
  expect([scheduled.get(ofFastClock), scheduled.get(first)]).toEqual([NOW, NOW + HOUR - MINUTE]);
  expect(read).toBeLessThan(20);
});
