import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Position, Revision } from '../../event-store/port.ts';
import { queueWebhookEvents, subscribersAt } from '../../processors/webhooks/queue-webhook-events.ts';
import { webhooks } from '../../projections/webhooks/endpoints.ts';
import { anEndpoint, created, enabled, removed } from '../support/deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([webhooks]);
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
  await stack.caughtUp([webhooks]);

  const what = { ...one, tracker_id: randomUUID(), type: 'session.created' } as const;
  const events = sources.map((position) => ({ what, position }));
  const expected = is.map((on) => (on ? [one.webhook_id] : []));
  // Up to a second passes before a position is saved at which nothing happened.
  await vi.waitFor(async () => expect(await subscribersAt(stack.pool, events)).toEqual(expected), 5_000);
  const [position] = sources as [Position];
  const other = { ...what, type: 'reveal.completed' } as const;
  expect(await subscribersAt(stack.pool, [{ what: other, position }])).toEqual([[]]);
});

it('returns nothing while the table has not reached the event, though this process saw it there', async () => {
  const one = anEndpoint();
  const position = await append(`webhooks-${one.partner_id}`, created(one, AT));
  const after = await append('source', { type: 'test.Happened.v1', data: {} });
  await stack.caughtUp([webhooks]);
  const event = [
    { what: { ...one, tracker_id: randomUUID(), type: 'session.created' } as const, position: after },
  ];
  await vi.waitFor(
    async () => expect(await subscribersAt(stack.pool, event)).toEqual([[one.webhook_id]]),
    5_000,
  );
  // As a failover to a standby that lacks the last commits.
  const client = await stack.session('begin');
  await client.query('delete from read.webhook_subscription where webhook_id = $1', [one.webhook_id]);
  await client.query(`update read.projection set position = $1 where name = 'webhooks'`, [
    String(position - 1n),
  ]);
  await client.query('commit');
  expect(await subscribersAt(stack.pool, event)).toBeNull();
});

it('has the position of the read model saved that its process knows to be further', async () => {
  const at = new Date(AT).toISOString();
  const [one, session_id] = [anEndpoint(), randomUUID()];
  const session = {
    type: 'sessions.SessionCreated.v1',
    data: {
      ...{ session_id, partner_id: one.partner_id, tracker_id: randomUUID(), visit_id: randomUUID() },
      ...{ visitor: 'v', visitor_country: null, first_seen_at: at, expires_at: at, sealed: 'sealed' },
    },
  };
  const position = ((await append(`tab-${randomUUID()}`, session)) + 100n) as Position;
  const hurryEndpoints = vi.fn(() => {
    void stack.pool.query(`update read.projection set position = $1 where name = 'webhooks'`, [position]);
  });
  const processor = queueWebhookEvents({
    ...stack,
    dayKeys: { of: async () => null },
    endpointsAt: async () => true,
    hurryEndpoints,
    applied: async () => true,
    labelsOf: async () => [],
  });
  const metadata = { $correlationId: 'c', $causationId: 'c', at };
  const event = { ...session, id: randomUUID(), stream: 'tab', revision: 0 as Revision, position, metadata };
  await processor.handle(event);
  expect(hurryEndpoints).toHaveBeenCalled();
});
