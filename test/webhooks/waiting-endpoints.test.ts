import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { readWaiting } from '../../processors/webhooks/claims.ts';
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
  const waiting = await readWaiting(explained, NOW);
  const at = new Map(waiting.map((one) => [one.webhook_id, one.next_attempt_at?.getTime()]));
  expect([at.get(ofFastClock), at.get(first)]).toEqual([NOW, NOW + HOUR - MINUTE]);
  expect(read).toBeLessThan(20);
});
