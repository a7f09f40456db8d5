import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Position, RecordedEvent, Revision } from '../../event-store/port.ts';
import { queueWebhookEvents, subscribersAt } from '../../processors/webhooks/queue-webhook-events.ts';
import { endpoints } from '../../projections/webhooks/endpoints/projection.ts';
import { anEndpoint, created, enabled, removed } from '../support/deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([endpoints]);
});
afterAll(() => stack.close());

const AT = Date.parse('2026-03-01T12:00:00.000Z');

const append = async (stream: string, event: { type: string; data: object }): Promise<Position> => {
  const metadata = { $correlationId: 'c', $causationId: 'c', at: new Date(AT).toISOString() };
  const { position } = await stack.store.append(stream, 'any', [{ ...event, id: randomUUID(), metadata }]);
  return position as Position;
};

it('returns the subscribers at each position, whatever has happened to the endpoint since', async () => {
  const one = anEndpoint();
  const stream = `webhooks-${one.partner_id}`;
  const life = [created, enabled, enabled, enabled, removed] as const;
  const is = [true, false, true, true, false];
  const sources: Position[] = [];
  for (const [n, event] of life.entries()) {
    const data = event === enabled ? enabled(one, is[n] === true, AT) : (event as typeof created)(one, AT);
    await append(stream, data);
    sources.push(await append('source', { type: 'test.Happened.v1', data: {} }));
  }
  await stack.caughtUp([endpoints]);

  const key = { ...one, tracker_id: randomUUID(), type: 'session.created' } as const;
  const events = sources.map((position) => ({ key, position }));
  const expected = is.map((on) => (on ? [one.webhook_id] : []));
  // Up to a second passes before a position is saved at which nothing happened.
  const last = sources.at(-1) as Position;
  await vi.waitFor(
    async () => expect(await subscribersAt(stack.pool, events, last)).toEqual(expected),
    5_000,
  );
  const [position] = sources as [Position];
  const other = { ...key, type: 'reveal.completed' } as const;
  expect(await subscribersAt(stack.pool, [{ key: other, position }], position)).toEqual([[]]);
});

it('returns nothing while the table has not reached the event, though this process saw it there', async () => {
  const one = anEndpoint();
  const position = await append(`webhooks-${one.partner_id}`, created(one, AT));
  const after = await append('source', { type: 'test.Happened.v1', data: {} });
  await stack.caughtUp([endpoints]);
  const event = [
    { key: { ...one, tracker_id: randomUUID(), type: 'session.created' } as const, position: after },
  ];
  await vi.waitFor(
    async () => expect(await subscribersAt(stack.pool, event, after)).toEqual([[one.webhook_id]]),
    5_000,
  );
  // As a failover to a standby that lacks the last commits.
  const client = await stack.session('begin');
  await client.query('delete from read.webhook_subscription where webhook_id = $1', [one.webhook_id]);
  await client.query(`update read.projection set position = $1 where name = 'webhooks'`, [
    String(position - 1n),
  ]);
  await client.query('commit');
  expect(await subscribersAt(stack.pool, event, after)).toBeNull();
});

/** An event of a new session of the endpoint's partner, at any position of the log. */
const aSession = ({ partner_id }: { readonly partner_id: string }, position: Position): RecordedEvent => {
  const at = new Date(AT).toISOString();
  const ids = {
    session_id: randomUUID(),
    partner_id,
    tracker_id: randomUUID(),
    visit_id: randomUUID(),
  };
  return {
    ...{ id: randomUUID(), stream: `tab-${randomUUID()}`, revision: 0 as Revision, position },
    type: 'sessions.SessionCreated.v1',
    data: {
      ...ids,
      ...{ visitor: 'v', visitor_country: null, first_seen_at: at, sealed: 'sealed' },
      expires_at: '2100-01-01T00:00:00.000Z',
    },
    metadata: { $correlationId: 'c', $causationId: 'c', at },
  };
};

const queueing = (over: Partial<Parameters<typeof queueWebhookEvents>[0]>) =>
  queueWebhookEvents({
    ...stack,
    dayKeys: { of: async () => null },
    readModels: { reached: async () => true, hurry: () => undefined },
    onStored: () => undefined,
    wake: () => undefined,
    labelsOf: async (sessions) => sessions.map(() => ({})),
    ...over,
  });
const saveEndpointsAt = (position: Position) =>
  stack.pool.query(`update read.projection set position = $1 where name = 'webhooks'`, [position]);

it('stores a body before its deliveries where an earlier leader may have queued the event', async () => {
  const one = anEndpoint();
  const position = await append(`webhooks-${one.partner_id}`, created(one, AT));
  await stack.caughtUp([endpoints]);
  await saveEndpointsAt(position);
  const steps: string[] = [];
  const store: TestStack['store'] = {
    ...stack.store,
    append: async (...args) => {
      const kind = args[0].slice(0, args[0].indexOf('-'));
      steps.push(`${kind} begins`);
      return stack.store.append(...args).finally(() => steps.push(`${kind} ends`));
    },
  };
  const processor = queueing({ store, dayKeys: { of: async () => ({ seal: (plain) => plain }) } });
  const stepsOf = async (event: RecordedEvent): Promise<readonly string[]> => {
    steps.length = 0;
    await processor.handle(event);
    return steps.slice(0, 2);
  };
  const [inOrder, atOnce] = [
    ['payload begins', 'payload ends'],
    ['payload begins', 'deliveries begins'],
  ];
  // Up to the head of the log as this process began, and what it has tried itself.
  const event = aSession(one, (position + 1_000n) as Position);
  expect(await stepsOf(aSession(one, (await stack.store.head()) as Position))).toEqual([]);
  await saveEndpointsAt((position + 1_000n) as Position);
  expect(await stepsOf(event)).toEqual(atOnce);
  expect(await stepsOf(event)).toEqual(inOrder);
  processor.begin?.();
  expect(await stepsOf(aSession(one, (position + 1n) as Position))).toEqual(inOrder);
});

it('has the position of the read model saved that its process knows to be further', async () => {
  const position = ((await stack.store.head()) ?? 0n) + 2_000n;
  const hurry = vi.fn(() => void saveEndpointsAt(position as Position));
  const readModels = { reached: async () => true, hurry };
  await queueing({ readModels }).handle(aSession(anEndpoint(), position as Position));
  expect(hurry).toHaveBeenCalledWith(['webhooks']);
});

it('waits for the read model of endpoints to apply their events, and to pass no others', async () => {
  const one = anEndpoint();
  const first = (((await stack.store.head()) ?? 0n) + 3_000n) as Position;
  const later = (by: bigint) => (first + by) as Position;
  await saveEndpointsAt(first);
  const waited: Position[] = [];
  const reached = async (_names: readonly string[], position: Position): Promise<boolean> => {
    waited.push(position);
    await saveEndpointsAt(position);
    return true;
  };
  const processor = queueing({ readModels: { reached, hurry: () => undefined } });
  await processor.handle(aSession(one, first));
  await processor.handle(aSession(one, later(10n)));
  await processor.handle({
    ...aSession(one, later(20n)),
    stream: `webhooks-${one.partner_id}`,
    type: 'other.v1',
  });
  await processor.handle(aSession(one, later(30n)));
  expect(waited).toEqual([first, first, later(20n)]);
  processor.begin?.();
  await processor.handle(aSession(one, later(40n)));
  expect(waited.at(-1)).toBe(later(40n));
});
