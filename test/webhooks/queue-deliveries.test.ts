import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import {
  type BodyKeys,
  deliveriesStream,
  deliveryId,
  type EventForEndpoints,
  queueDeliveries,
} from '../../commands/webhooks/queue-deliveries.ts';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { PAYLOAD_PREFIX, type SealedBody } from '../../domain/webhooks/events.ts';
import { type EventStore, StoreUnavailable } from '../../event-store/port.ts';
import { deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
const faults = faultyStore();
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([deliveries]);
});
afterEach(() => faults.heal());
afterAll(() => stack.close());

const keys: BodyKeys = { of: async () => ({ seal: (plain) => plain }) };

/** A session that is notified to so many endpoints of a partner. */
const aNotification = (endpoints: number, over: Partial<EventForEndpoints> = {}): EventForEndpoints => {
  const at = isoTime(stack.clock.now());
  const partner_id = randomUUID();
  return {
    envelope: {
      id: `evt_session_${randomUUID()}`,
      type: 'session.created',
      created_at: at,
      data: { session_id: randomUUID() },
    } as unknown as EventForEndpoints['envelope'],
    partner_id,
    webhook_ids: Array.from({ length: endpoints }, () => randomUUID()),
    key_day: at.slice(0, 10),
    expires_at: isoTime(stack.clock.now() + 30 * DAY),
    source_position: '1',
    context: stack.context(),
    ...over,
  };
};
const queueAll = (...some: EventForEndpoints[]) => queueDeliveries(faults.around(stack.store), keys, some);
const payloadOf = ({ envelope }: EventForEndpoints) =>
  Array.fromAsync(stack.store.readStream(`${PAYLOAD_PREFIX}${envelope.id}`));
/** The deliveries that the read model shows of a notification. */
const shown = async ({ envelope }: EventForEndpoints): Promise<Record<string, unknown>[]> => {
  await stack.caughtUp([deliveries]);
  return stack.rows(
    'select delivery_id::text, state from read.webhook_delivery where event_id = $1 order by delivery_id',
    [envelope.id],
  );
};
const eachPending = ({ envelope, webhook_ids }: EventForEndpoints) =>
  webhook_ids
    .map((id) => ({ delivery_id: deliveryId(id, envelope.id), state: 'pending' }))
    .sort((a, b) => (a.delivery_id < b.delivery_id ? -1 : 1));

it('stores the body once and queues one delivery for each endpoint', async () => {
  const one = aNotification(3);
  const position = await queueAll(one);
  expect(position).toBe(await stack.store.head());
  expect(await payloadOf(one)).toHaveLength(1);
  expect(await shown(one)).toEqual(eachPending(one));
});

it('shows each delivery once when an event is handled twice, also by two processes at once', async () => {
  const one = aNotification(2);
  await Promise.all([queueAll(one), queueAll(one)]);
  await queueAll(one);
  const [payload, ...more] = await payloadOf(one);
  expect(payload?.data).toMatchObject({ event_id: one.envelope.id });
  expect(more).toEqual([]);
  expect(await shown(one)).toEqual(eachPending(one));
});

it('continues after a crash between body and delivery, with the body that was stored first', async () => {
  const one = aNotification(1);
  faults.failAppends('deliveries-', () => new StoreUnavailable('away'));
  await expect(queueAll(one)).rejects.toBeInstanceOf(StoreUnavailable);
  const before = await payloadOf(one);
  expect(before).toHaveLength(1);
  expect(await shown(one)).toEqual([]);
  faults.heal();
  const changed = { ...one, envelope: { ...one.envelope, data: { changed: true } } as never };
  const another = aNotification(1);
  const stored: SealedBody[] = [];
  await queueDeliveries(stack.store, keys, [changed, another], { onStored: (body) => stored.push(body) });
  expect(await payloadOf(one)).toEqual(before);
  expect(await shown(one)).toEqual(eachPending(one));
  // What nobody stored may not be remembered.
  const [payload] = await payloadOf(another);
  expect(stored.map(({ event_id }) => event_id)).toEqual([another.envelope.id]);
  expect(payload?.data).toMatchObject({ sealed: stored[0]?.sealed.toString('base64') });
});

it.each([
  ['deleted', (stream: string) => stack.store.expire(stream, 0)],
  ['not deleted yet', async () => stack.clock.advance(31 * DAY)],
])('queues the other events when one has expired meanwhile and its body is %s', async (_state, end) => {
  const [gone, there] = [aNotification(1), aNotification(1, { expires_at: '2100-01-01T00:00:00.000Z' })];
  faults.failAppends('deliveries-', () => new StoreUnavailable('away'));
  await expect(queueAll(gone)).rejects.toBeInstanceOf(StoreUnavailable);
  faults.heal();
  const right = stack.clock.now();
  await end(`${PAYLOAD_PREFIX}${gone.envelope.id}`);
  await queueAll(gone, there);
  expect(await shown(gone)).toEqual([]);
  expect(await shown(there)).toEqual(eachPending(there));
  stack.clock.set(right);
});

it('appends the body and its deliveries at the same moment when the event was not handled before', async () => {
  const one = aNotification(2);
  const appended: string[] = [];
  const gate = Promise.withResolvers<void>();
  const waiting = {
    ...stack.store,
    append: async (...args: Parameters<typeof stack.store.append>) => {
      appended.push(args[0].slice(0, args[0].indexOf('-') + 1));
      await gate.promise;
      return stack.store.append(...args);
    },
  };
  const queueing = queueDeliveries(waiting, keys, [one], { mayRepeat: false });
  await vi.waitFor(() => expect(appended).toEqual([PAYLOAD_PREFIX, 'deliveries-', 'deliveries-']));
  gate.resolve();
  expect(await queueing).toBe(await stack.store.head());
  expect(await payloadOf(one)).toHaveLength(1);
  expect(await shown(one)).toEqual(eachPending(one));
});

it('queues nothing of a day whose key is destroyed', async () => {
  const one = aNotification(1);
  const destroyed: BodyKeys = { of: async () => null };
  expect(await queueDeliveries(stack.store, destroyed, [one], { mayRepeat: false })).toBeNull();
  expect(await payloadOf(one)).toEqual([]);
  expect(await shown(one)).toEqual([]);
});

it('queues nothing for an endpoint whose deliveries of that day are deleted, and queues the others', async () => {
  const one = aNotification(2);
  const [gone = '', there = ''] = one.webhook_ids;
  await queueAll({ ...aNotification(0), webhook_ids: [gone] });
  await stack.store.expire(deliveriesStream(gone, one.envelope.created_at), 0);
  await queueAll(one);
  expect(await shown(one)).toEqual([{ delivery_id: deliveryId(there, one.envelope.id), state: 'pending' }]);
});

it('appends the deliveries of one endpoint in one append', async () => {
  const endpoint = randomUUID();
  const several = Array.from({ length: 50 }, () => aNotification(0, { webhook_ids: [endpoint] }));
  let appends = 0;
  const counting = {
    ...stack.store,
    append: (...args: Parameters<typeof stack.store.append>) => {
      if (args[0].startsWith('deliveries-')) appends += 1;
      return stack.store.append(...args);
    },
  };
  await queueDeliveries(counting, keys, several);
  expect(appends).toBe(1);
  await stack.caughtUp([deliveries]);
  const rows = await stack.rows('select from read.webhook_delivery where webhook_id = $1', [endpoint]);
  expect(rows).toHaveLength(50);
});

it('queues the delivery of a body that a conflicting append stores between two reads', async () => {
  const one = aNotification(1);
  await queueAll(one);
  const again = { ...one, webhook_ids: [randomUUID()] };
  let reads = 0;
  // On a cluster an event refuses others before it can be read.
  const store: EventStore = {
    ...stack.store,
    readStream: (stream, options) => {
      reads += 1;
      return reads === 1 ? nothingYet() : stack.store.readStream(stream, options);
    },
  };
  await queueDeliveries(store, keys, [again]);
  expect(reads).toBeGreaterThan(1);
  expect(await shown(one)).toEqual(
    eachPending({ ...one, webhook_ids: [...one.webhook_ids, ...again.webhook_ids] }),
  );
});

async function* nothingYet(): AsyncGenerator<never> {}
