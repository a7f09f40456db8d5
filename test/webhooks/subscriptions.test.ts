import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Position, StoreUnavailable } from '../../event-store/port.ts';
import { subscribersAt } from '../../processors/webhooks/queue-webhook-events.ts';
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
  const found = await subscribersAt(
    stack.pool,
    sources.map((position) => ({ what, position })),
  );
  expect(found).toEqual(is.map((on) => (on ? [one.webhook_id] : [])));
  const [position] = sources as [Position];
  const other = { ...what, type: 'reveal.completed' } as const;
  expect(await subscribersAt(stack.pool, [{ what: other, position }])).toEqual([[]]);
});

it('is refused while the table has not reached the event, though this process saw it there', async () => {
  const one = anEndpoint();
  const position = await append(`webhooks-${one.partner_id}`, created(one, AT));
  const after = await append('source', { type: 'test.Happened.v1', data: {} });
  await stack.caughtUp([webhooks]);
  const event = [
    { what: { ...one, tracker_id: randomUUID(), type: 'session.created' } as const, position: after },
  ];
  expect(await subscribersAt(stack.pool, event)).toEqual([[one.webhook_id]]);
  // As a failover to a standby that lacks the last commits.
  const client = await stack.session('begin');
  await client.query('delete from read.webhook_subscription where webhook_id = $1', [one.webhook_id]);
  await client.query(`update read.projection set position = $1 where name = 'webhooks'`, [
    String(position - 1n),
  ]);
  await client.query('commit');
  await expect(subscribersAt(stack.pool, event)).rejects.toBeInstanceOf(StoreUnavailable);
});
