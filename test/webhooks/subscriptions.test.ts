import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Position } from '../../event-store/port.ts';
import { loadSubscriptions } from '../../processors/webhooks/queue-webhook-events.ts';
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
