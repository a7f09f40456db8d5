/** How many deliveries a partner's queue admits, on the read models of a real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { deliveryId } from '../../commands/webhooks/queue-deliveries.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { deliveryEvents, endpointChangeEvents } from '../../domain/webhooks/events.ts';
import { createWebhookQueue, type WebhookQueueOptions } from '../../processors/webhooks/queue-admission.ts';
import { deliveries } from '../../projections/webhooks/deliveries.ts';
import { webhooks } from '../../projections/webhooks/endpoints.ts';
import { anEndpoint, attempted, created, queued, type TestEndpoint } from '../support/deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([deliveries, webhooks]);
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
  await stack.caughtUp([deliveries, webhooks]);
};
const aQueue = (over: Partial<WebhookQueueOptions> = {}) =>
  createWebhookQueue({
    pool: stack.pool,
    now: () => stack.clock.now(),
    deliveryIdOf: deliveryId,
    most: 3,
    mostBytes: 1_000,
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
    const queue = aQueue({ most: 10 });
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
    const queue = aQueue({ most: 1 });
    const event = randomUUID();
    for (let n = 0; n < 3; n += 1) expect(await queue.reserve(eventFor(partner, event))).not.toBeNull();
    expect(await queue.reserve(eventFor(partner))).toBeNull();
  });

  it('has room again when an event was not appended, and when a delivery has ended', async () => {
    const partner = await aPartner();
    const queue = aQueue({ most: 1 });
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
    const queue = aQueue({ most: 1 });
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

  it('is full when its stored bodies reach their limit', async () => {
    const partner = await aPartner();
    await stack.rows(`insert into read.webhook_retained (partner_id, day, bytes) values ($1, $2, 1000)`, [
      partner.partner_id,
      isoTime(stack.clock.now()).slice(0, 10),
    ]);
    expect(await aQueue().reserve(eventFor(partner))).toBeNull();
  });

  it('of another partner is not affected', async () => {
    const [full, other] = [await aPartner(), await aPartner()];
    const queue = aQueue({ most: 0 });
    expect(await queue.reserve(eventFor(full))).toBeNull();
    expect(await aQueue({ most: 1 }).reserve(eventFor(other))).not.toBeNull();
  });

  it('needs no slot for an event without a subscriber, even while it is full', async () => {
    const partner = await aPartner();
    const queue = aQueue({ most: 0 });
    const unwanted = { ...eventFor(partner), to: { type: 'reveal.completed', tracker_id: 'any' } };
    expect(await queue.reserve(unwanted)).not.toBeNull();
  });

  it('knows a new endpoint at once when it is notified of a change, and otherwise after a moment', async () => {
    const partner = anEndpoint();
    const queue = aQueue({ most: 0 });
    expect(await queue.reserve(eventFor(partner))).not.toBeNull();
    await append(created(partner, stack.clock.now()));
    expect(await queue.reserve(eventFor(partner))).not.toBeNull();
    queue.endpointsChanged(partner.partner_id);
    expect(await queue.reserve(eventFor(partner))).toBeNull();
  });
});
