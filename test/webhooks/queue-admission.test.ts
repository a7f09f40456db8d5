/** How many deliveries a partner's queue admits, on the read models of a real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { deliveryId } from '../../commands/webhooks/queue-deliveries.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { deliveryEvents, endpointChangeEvents } from '../../domain/webhooks/events.ts';
import {
  createWebhookQueue,
  reserveForSession,
  type WebhookQueueOptions,
} from '../../processors/webhooks/queue-admission.ts';
import { deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import { endpoints } from '../../projections/webhooks/endpoints/projection.ts';
import { anEndpoint, attempted, created, queued, type TestEndpoint } from '../support/deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([deliveries, endpoints]);
});
afterAll(() => stack.close());
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The queue remembers what it has read for less than this. */
const STALE_MS = 300;
/** A slot that is not queued within this time is free again. */
const UNQUEUED_MS = 10_001;

const append = async (...events: { type: string; data: object }[]): Promise<void> => {
  const made = toNewEvents({ ...endpointChangeEvents, ...deliveryEvents }, events, stack.context());
  await stack.store.append(`deliveries-${isoTime(stack.clock.now()).slice(0, 10)}`, 'any', made);
  await stack.caughtUp([deliveries, endpoints]);
};
const aQueue = (over: Partial<WebhookQueueOptions> = {}) =>
  createWebhookQueue({
    pool: stack.pool,
    now: () => stack.clock.now(),
    deliveryIdOf: deliveryId,
    maxPending: 3,
    maxBytes: 1_000,
    hurry: () => undefined,
    ...over,
  });
const aPartner = async (): Promise<TestEndpoint> => {
  const endpoint = anEndpoint();
  await append(created(endpoint, stack.clock.now()));
  return endpoint;
};
const eventFor = ({ partner_id }: TestEndpoint, event_id: string = randomUUID()) => ({
  partner_id,
  event_id,
  to: { type: 'session.created', tracker_id: 'any' },
});
/** The delivery of an event as the processor queues it. */
const delivery = ({ webhook_id, partner_id }: TestEndpoint, event_id: string) => ({
  webhook_id,
  partner_id,
  event_id,
  delivery_id: deliveryId(webhook_id, event_id),
});

describe("a partner's queue", () => {
  it('admits exactly its limit of a hundred concurrent events', async () => {
    const partner = await aPartner();
    const queue = aQueue({ maxPending: 10 });
    const slots = await Promise.all(Array.from({ length: 100 }, () => queue.reserve(eventFor(partner))));
    expect(slots.filter((slot) => slot !== null)).toHaveLength(10);
  });

  it('counts an event once from its admission on, also while and after it is queued', async () => {
    const partner = await aPartner();
    const queue = aQueue();
    const events = [randomUUID(), randomUUID()];
    for (const event of events) expect(await queue.reserve(eventFor(partner, event))).not.toBeNull();
    await append(...events.map((event) => queued(delivery(partner, event), stack.clock.now())));
    vi.advanceTimersByTime(STALE_MS);
    expect(await queue.reserve(eventFor(partner))).not.toBeNull();
    expect(await queue.reserve(eventFor(partner))).toBeNull();
  });

  it('admits the same event again without a second slot', async () => {
    const partner = await aPartner();
    const queue = aQueue({ maxPending: 1 });
    const event = randomUUID();
    for (let n = 0; n < 3; n += 1) expect(await queue.reserve(eventFor(partner, event))).not.toBeNull();
    expect(await queue.reserve(eventFor(partner))).toBeNull();
  });

  it('has room again when an event was not appended, and when a delivery has ended', async () => {
    const partner = await aPartner();
    const queue = aQueue({ maxPending: 1 });
    const unappended = await queue.reserve(eventFor(partner));
    unappended?.release();
    const event = randomUUID();
    expect(await queue.reserve(eventFor(partner, event))).not.toBeNull();
    await append(queued(delivery(partner, event), stack.clock.now()));
    expect(await queue.reserve(eventFor(partner))).toBeNull();
    await append(attempted(delivery(partner, event), { at: stack.clock.now() }));
    expect(await queue.reserve(eventFor(partner))).not.toBeNull();
  });

  it('has room again when an admitted event was not queued for ten seconds', async () => {
    const partner = await aPartner();
    const queue = aQueue({ maxPending: 1 });
    (await queue.reserve(eventFor(partner)))?.confirm();
    vi.advanceTimersByTime(UNQUEUED_MS - 10);
    expect(await queue.reserve(eventFor(partner))).toBeNull();
    vi.advanceTimersByTime(20);
    expect(await queue.reserve(eventFor(partner))).not.toBeNull();
  });

  it('counts what other processes have queued', async () => {
    const partner = await aPartner();
    const events = [randomUUID(), randomUUID(), randomUUID()];
    await append(...events.map((event) => queued(delivery(partner, event), stack.clock.now())));
    expect(await aQueue().reserve(eventFor(partner))).toBeNull();
  });

  it('takes sessions until its stored bodies reach their limit, and refuses them from then on', async () => {
    const { partner_id } = await aPartner();
    const store = (bytes: number) =>
      stack.rows(
        `insert into read.webhook_retained (partner_id, day, bytes) values ($1, $2, $3)
         on conflict (partner_id, day) do update set bytes = excluded.bytes`,
        [partner_id, isoTime(stack.clock.now()).slice(0, 10), bytes],
      );
    const reserve = () =>
      reserveForSession(aQueue())({ partner_id, tracker_id: randomUUID(), session_id: randomUUID() });
    await store(999);
    expect(await reserve()).not.toBeNull();
    await store(1_000);
    expect(await reserve()).toBeNull();
  });

  it('knows a new endpoint at once when it is notified of a change, and otherwise after a moment', async () => {
    const partner = anEndpoint();
    const queue = aQueue({ maxPending: 0 });
    expect(await queue.reserve(eventFor(partner))).not.toBeNull();
    await append(created(partner, stack.clock.now()));
    expect(await queue.reserve(eventFor(partner))).not.toBeNull();
    queue.endpointsChanged(partner.partner_id);
    expect(await queue.reserve(eventFor(partner))).toBeNull();
  });
});

describe('the wake-up of the delivery queue', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  /** A queue whose partner has one endpoint, subscribed to new sessions of one tracker. */
  const aWakingQueue = () => {
    const endpoints = [{ webhook_id: 'one', tracker_id: 'followed', events: ['session.created'] }];
    const pool = {
      query: async () => ({ rows: [{ endpoints, pending: '0', bytes: '0', queued: [] }] }),
    } as unknown as pg.Pool;
    let wakeups = 0;
    const queue = createWebhookQueue({
      pool,
      now: Date.now,
      deliveryIdOf: (webhookId, eventId) => `${webhookId} ${eventId}`,
      maxPending: 100,
      maxBytes: 1_000,
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

  it('follows events in quick succession once', async () => {
    const { happens, wakeups } = aWakingQueue();
    for (let n = 0; n < 20; n += 1) {
      await happens(`event ${n}`, 'followed');
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(wakeups()).toBe(4);
  });
});
