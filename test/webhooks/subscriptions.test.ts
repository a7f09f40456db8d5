import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { endpointsDecider, snapshotEndpoints } from '../../domain/webhooks/endpoints.ts';
import type { Position } from '../../event-store/port.ts';
import { loadSubscriptions } from '../../processors/webhooks/queue-webhook-events.ts';
import { webhooks } from '../../projections/webhooks/endpoints.ts';
import { anEndpoint, created, enabled, removed } from '../support/deliveries.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
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

it('returns the subscribers at each position, from any start and after repeated events', async () => {
  const one = anEndpoint();
  const stream = `webhooks-${one.partner_id}`;
  const appended: { readonly event: Position; readonly source: Position }[] = [];
  const life = [created, enabled, enabled, enabled, removed] as const;
  const is = [true, false, true, true, false];
  for (const [n, event] of life.entries()) {
    const data = event === enabled ? enabled(one, is[n] === true, AT) : (event as typeof created)(one, AT);
    appended.push({
      event: await append(stream, data),
      source: await append('source', { type: 'test.Happened.v1', data: {} }),
    });
  }
  await stack.caughtUp([webhooks]);
  const stored = await Array.fromAsync(stack.store.readStream(stream));
  expect(stored).toHaveLength(life.length);

  for (let begun = -1; begun < appended.length; begun += 1) {
    const known = await loadSubscriptions(stack.pool, appended[begun]?.event ?? null);
    const taken = stored.map((event, n) => {
      if (n <= begun) return null;
      known.apply(event);
      known.apply(event);
      const source = appended[n]?.source as Position;
      return known.subscribersOf({ ...one, tracker_id: 'any', type: 'session.created' }, source).length === 1;
    });
    expect(taken).toEqual(is.map((on, n) => (n <= begun ? null : on)));
    const [first] = appended;
    if (begun < 0 && first) {
      const what = { ...one, tracker_id: 'any' } as const;
      // A failed batch is applied again.
      expect(known.subscribersOf({ ...what, type: 'session.created' }, first.source)).toEqual([
        one.webhook_id,
      ]);
      expect(known.subscribersOf({ ...what, type: 'reveal.completed' }, first.source)).toEqual([]);
    }
  }
});

it('forgets deleted endpoints, which a script may create and delete all day', async () => {
  const known = await loadSubscriptions(stack.pool, null);
  const before = known.size;
  const one = anEndpoint();
  for (let n = 0; n < 100; n += 1) {
    const { partner_id } = one;
    const endpoint = { ...anEndpoint(), partner_id };
    const stream = `webhooks-${partner_id}`;
    await append(stream, created(endpoint, AT));
    await append(stream, removed(endpoint, AT));
  }
  const stored = await Array.fromAsync(stack.store.readStream(`webhooks-${one.partner_id}`));
  for (const event of stored) known.apply(event);
  expect(known.size).toBe(before + 100);
  known.dropBefore((await append('source', { type: 'test.Happened.v1', data: {} })) as Position);
  expect(known.size).toBe(before);
});

it('does not remember again the deleted endpoints of a snapshot', async () => {
  const known = await loadSubscriptions(stack.pool, null);
  const before = known.size;
  const { partner_id } = anEndpoint();
  const stream = `webhooks-${partner_id}`;
  let state = endpointsDecider.initial;
  for (let n = 0; n < 10; n += 1) {
    const endpoint = anEndpoint(partner_id);
    for (const event of [created(endpoint, AT), removed(endpoint, AT)]) {
      await append(stream, event);
      state = endpointsDecider.evolve(state, event);
    }
  }
  await append(stream, snapshotEndpoints(state));
  for await (const event of stack.store.readStream(stream)) {
    known.apply(event);
    known.dropBefore(event.position);
  }
  known.dropBefore(await append('source', { type: 'test.Happened.v1', data: {} }));
  expect(known.size).toBe(before);
});

it('loads neither endpoints that were deleted nor subscriptions that ended before', async () => {
  const one = anEndpoint();
  await append(`webhooks-${one.partner_id}`, created(one, AT));
  await stack.caughtUp([webhooks]);
  await stack.rows(
    `insert into read.webhook_endpoint (webhook_id, partner_id, name, url, events, enabled, created_at, updated_at,
                                        deleted_at, last_revision, last_position)
     select gen_random_uuid(), $1, '', '', '{}', false, $2, $2, $2, n, n from generate_series(1, 5000) n`,
    [one.partner_id, new Date(AT)],
  );
  await stack.rows(
    `insert into read.webhook_subscription (webhook_id, partner_id, events, from_position, to_position)
     select $1, $2, '{}', -n - 1, -n from generate_series(1, 5000) n`,
    [one.webhook_id, one.partner_id],
  );
  await stack.rows('analyze read.webhook_endpoint, read.webhook_subscription');
  const explained = {
    query: async ({ text, values }: { text: string; values: unknown[] }) => {
      const plan = await planOf(stack.pool, text, values);
      read.push(rowsRead(plan, 'webhook_endpoint') + rowsRead(plan, 'webhook_subscription'));
      return stack.pool.query(text, values);
    },
  } as unknown as pg.Pool;
  const read: number[] = [];
  const known = await loadSubscriptions(explained, 0n as Position);
  const to = { ...one, tracker_id: 'any', type: 'session.created' } as const;
  expect(known.subscribersOf(to, 10_000n as Position)).toEqual([one.webhook_id]);
  expect(read[0]).toBeLessThan(500);
});
