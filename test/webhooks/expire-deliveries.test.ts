import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect, it } from 'vitest';
import type { EventStore, Position } from '../../event-store/port.ts';
import { expireDeliveries } from '../../processors/webhooks/expire-deliveries.ts';

const [WEBHOOK, PARTNER] = [randomUUID(), randomUUID()];
const expired = () => ({
  delivery_id: randomUUID(),
  cursor: '2026-11-22',
  webhook_id: WEBHOOK,
  partner_id: PARTNER,
  created_at: new Date(0),
});

it('waits for the read model after each thousand expired deliveries', async () => {
  const pages = [1_000, 1_000, 1].map((length) => Array.from({ length }, expired));
  const steps: string[] = [];
  const store = {
    head: async () => 1n as Position,
    append: async () => {
      steps.push('expires a thousand');
      return { revision: 0, position: null };
    },
  };
  await expireDeliveries({
    store: store as unknown as EventStore,
    pool: { query: async () => ({ rows: pages.shift() }) } as unknown as pg.Pool,
    clock: { now: () => 0 },
    projected: async () => {
      steps.push('waits');
      return true;
    },
    signal: new AbortController().signal,
  });
  expect(steps).toEqual([
    'waits',
    'expires a thousand',
    'waits',
    'expires a thousand',
    'waits',
    'expires a thousand',
  ]);
});
