import type pg from 'pg';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createWebhookQueue } from '../../processors/webhooks/queue-admission.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A queue whose partner has one endpoint, subscribed to new sessions of one tracker. */
const aQueue = () => {
  const endpoints = [{ webhook_id: 'one', tracker_id: 'followed', events: ['session.created'] }];
  const pool = {
    query: async () => ({ rows: [{ endpoints, pending: '0', bytes: '0', queued: [] }] }),
  } as unknown as pg.Pool;
  let wakeups = 0;
  const queue = createWebhookQueue({
    pool,
    now: Date.now,
    deliveryIdOf: (webhookId, eventId) => `${webhookId} ${eventId}`,
    most: 100,
    mostBytes: 1_000,
    hurry: () => {
      wakeups += 1;
    },
  });
  const happens = async (event_id: string, tracker_id: string): Promise<void> => {
    const slots = await queue.reserve({
      partner_id: 'p',
      event_id,
      to: { type: 'session.created', tracker_id },
    });
    slots?.confirm();
  };
  return { happens, wakeups: () => wakeups };
};

it('an event with a subscriber wakes the delivery queue', async () => {
  const { happens, wakeups } = aQueue();
  await happens('a', 'other');
  expect(wakeups()).toBe(0);
  await happens('b', 'followed');
  expect(wakeups()).toBe(1);
});

it('events in quick succession wake the delivery queue once', async () => {
  const { happens, wakeups } = aQueue();
  for (let n = 0; n < 20; n += 1) {
    await happens(`event ${n}`, 'followed');
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(wakeups()).toBe(4);
});
