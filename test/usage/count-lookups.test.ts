import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { totalUsage } from '../../commands/usage/close-usage.ts';
import { createLookupCounter } from '../../commands/usage/count-calls.ts';
import { type EventStore, type RecordedEvent, StoreUnavailable } from '../../event-store/port.ts';
import { closeUsageStreams, expireUsageStreams } from '../../processors/usage/close-usage-streams.ts';
import { usage } from '../../projections/usage/lookup-counts.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([usage]);
});
afterAll(() => stack.close());

const DAY = 86_400_000;
const one = (keyId: string) => ({ keyId, outcome: 'isp', served: true, durationMs: 1.5 }) as const;
const sums = async (keyId: string) => {
  await stack.caughtUp([usage]);
  const [row] = await stack.rows(
    `select count(distinct source)::int as sources, sum(requests)::int as requests, sum(cache_hits)::int as hits,
            sum(duration_us)::int as us from read.usage_hour where key_id = $1`,
    [keyId],
  );
  return row;
};
const streamsOf = async (keyId: string) =>
  (await stack.rows('select distinct source from read.usage_hour where key_id = $1', [keyId])).map((row) =>
    String(row.source),
  );

describe('counting lookups', () => {
  it('makes each count durable before it resolves, with many counts in an append', async () => {
    const counter = createLookupCounter(stack.store, stack.clock);
    await Promise.all(Array.from({ length: 500 }, () => counter.count(one('k1'))));
    expect(await sums('k1')).toEqual({ sources: 1, requests: 500, hits: 500, us: 750_000 });
    const [stream] = await streamsOf('k1');
    const events = await Array.fromAsync(stack.store.readStream(stream ?? ''));
    expect(events.length).toBeLessThan(10);
    await counter.close();
  });

  it('uses a new stream for the next day', async () => {
    const counter = createLookupCounter(stack.store, stack.clock);
    await counter.count(one('k2'));
    stack.clock.advance(DAY);
    await counter.count(one('k2'));
    expect(await sums('k2')).toMatchObject({ sources: 2, requests: 2 });
    await counter.close();
  });

  it('counts each day once around midnight although the second append fails at first', async () => {
    let fail = true;
    const failing: EventStore = {
      ...stack.store,
      append: async (stream, ...rest) => {
        if (fail && stream.endsWith(new Date(stack.clock.now()).toISOString().slice(0, 10))) {
          fail = false;
          throw new StoreUnavailable('away');
        }
        return stack.store.append(stream, ...rest);
      },
    };
    const counter = createLookupCounter(failing, stack.clock);
    stack.clock.advance(DAY - (stack.clock.now() % DAY) - 1);
    const before = counter.count(one('k7'));
    stack.clock.advance(2);
    await Promise.all([before, counter.count(one('k7'))]);
    expect(await sums('k7')).toMatchObject({ sources: 2, requests: 2 });
    await counter.close();
  });
});

describe('the upkeep of usage', () => {
  const eventsOf = async (stream: string): Promise<RecordedEvent[]> =>
    Array.fromAsync(stack.store.readStream(stream));
  const day = () => new Date(stack.clock.now()).toISOString().slice(0, 10);

  it('closes yesterday with totals that equal the counts', async () => {
    const counter = createLookupCounter(stack.store, stack.clock);
    for (let n = 0; n < 5; n += 1) await counter.count(one('k5'));
    await counter.close();
    const before = await sums('k5');
    const [stream = ''] = await streamsOf('k5');
    await closeUsageStreams(stack);
    expect(await eventsOf(stream)).toHaveLength(5);
    stack.clock.advance(DAY + 3_600_000);
    await closeUsageStreams(stack);
    expect((await eventsOf(stream)).map(({ type }) => type)).toEqual(['usage.LookupsTotalled.v1']);
    await totalUsage(stack.store, stream, stack.context());
    expect(await eventsOf(stream)).toHaveLength(1);
    expect(await sums('k5')).toEqual(before);
  });

  it('expires counts older than 400 days and nothing else', async () => {
    const counter = createLookupCounter(stack.store, stack.clock);
    await counter.count(one('k6'));
    await counter.close();
    await sums('k6');
    const [stream = ''] = await streamsOf('k6');
    const forgotten: string[] = [];
    const forget = async (before: string) => void forgotten.push(before);
    stack.clock.advance(400 * DAY);
    await expireUsageStreams(stack, forget);
    expect(await eventsOf(stream)).toHaveLength(1);
    stack.clock.advance(DAY);
    await expireUsageStreams(stack, forget);
    expect(await eventsOf(stream)).toEqual([]);
    expect(forgotten.at(-1)).toBe(new Date(stack.clock.now() - 400 * DAY).toISOString().slice(0, 10));
    expect(day()).not.toBe(forgotten.at(-1));
  });
});
