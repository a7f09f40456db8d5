import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CountNotDurable } from '../../commands/usage/count-groups.ts';
import { createLookupCounter } from '../../commands/usage/count-lookups.ts';
import { totalUsage } from '../../commands/usage/total-usage.ts';
import {
  type EventStore,
  OutcomeUnknown,
  type RecordedEvent,
  StoreUnavailable,
} from '../../event-store/port.ts';
import { closeUsageStreams, expireUsageStreams } from '../../processors/usage/close-usage-streams.ts';
import { usage } from '../../projections/usage/lookup-counts.ts';
import { type House, openHouse } from '../support/house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
  house.project([usage]);
});
afterAll(() => house.close());

const DAY = 86_400_000;
const one = (keyId: string) => ({ keyId, outcome: 'isp', cacheHit: true, durationMs: 1.5 }) as const;
const sums = async (keyId: string) => {
  await house.caughtUp([usage]);
  const [row] = await house.rows(
    `select count(distinct source)::int as sources, sum(requests)::int as requests, sum(cache_hits)::int as hits,
            sum(duration_us)::int as us from read.usage_hour where key_id = $1`,
    [keyId],
  );
  return row;
};
const streamsOf = async (keyId: string) =>
  (await house.rows('select distinct source from read.usage_hour where key_id = $1', [keyId])).map((row) =>
    String(row.source),
  );

describe('counting lookups', () => {
  it('makes each durable before it resolves, many to an append', async () => {
    const counter = createLookupCounter(house.store, house.clock);
    await Promise.all(Array.from({ length: 500 }, () => counter.count(one('k1'))));
    expect(await sums('k1')).toEqual({ sources: 1, requests: 500, hits: 500, us: 750_000 });
    const [stream] = await streamsOf('k1');
    const events = await Array.fromAsync(house.store.readStream(stream ?? ''));
    expect(events.length).toBeLessThan(10);
    await counter.close();
  });

  it('goes on with the next day on a stream of its own', async () => {
    const counter = createLookupCounter(house.store, house.clock);
    await counter.count(one('k2'));
    house.clock.at += DAY;
    await counter.count(one('k2'));
    expect(await sums('k2')).toMatchObject({ sources: 2, requests: 2 });
    await counter.close();
  });

  it('around midnight counts each day once, though the second append fails at first', async () => {
    let fail = true;
    const failing: EventStore = {
      ...house.store,
      append: async (stream, ...rest) => {
        if (fail && stream.endsWith(new Date(house.clock.now()).toISOString().slice(0, 10))) {
          fail = false;
          throw new StoreUnavailable('away');
        }
        return house.store.append(stream, ...rest);
      },
    };
    const counter = createLookupCounter(failing, house.clock);
    house.clock.at += DAY - (house.clock.at % DAY) - 1;
    const before = counter.count(one('k7'));
    house.clock.at += 2;
    await Promise.all([before, counter.count(one('k7'))]);
    expect(await sums('k7')).toMatchObject({ sources: 2, requests: 2 });
    await counter.close();
  });

  it('that hangs is refused after four seconds, and taken back when it lands later', async () => {
    let hang = true;
    let release = (): void => undefined;
    const hanging: EventStore = {
      ...house.store,
      append: async (...append) => {
        if (hang) await new Promise<void>((resolve) => (release = resolve));
        return house.store.append(...append);
      },
    };
    const counter = createLookupCounter(hanging, house.clock);
    const began = performance.now();
    await expect(counter.count(one('k3'))).rejects.toThrow(CountNotDurable);
    expect(performance.now() - began).toBeLessThan(5_000);
    hang = false;
    release();
    await counter.count(one('k3'));
    await counter.close();
    expect(await sums('k3')).toMatchObject({ requests: 1, sources: 1 });
  });

  it('whose outcome stays unknown is taken back, and later ones go to a new stream', async () => {
    let lose = true;
    const losing: EventStore = {
      ...house.store,
      append: async (...append) => {
        const appended = await house.store.append(...append);
        if (lose) throw new OutcomeUnknown('the answer was lost');
        return appended;
      },
    };
    const counter = createLookupCounter(losing, house.clock);
    await expect(counter.count(one('k4'))).rejects.toThrow(CountNotDurable);
    lose = false;
    await counter.count(one('k4'));
    await counter.close();
    // The row of the first stream has gone with its only count.
    expect(await sums('k4')).toMatchObject({ sources: 1, requests: 1 });
  });
});

describe('the upkeep of usage', () => {
  const eventsOf = async (stream: string): Promise<RecordedEvent[]> =>
    Array.fromAsync(house.store.readStream(stream));
  const day = () => new Date(house.clock.now()).toISOString().slice(0, 10);

  it('closes yesterday: totals stand for the counts, and say the same', async () => {
    const counter = createLookupCounter(house.store, house.clock);
    for (let n = 0; n < 5; n += 1) await counter.count(one('k5'));
    await counter.close();
    const before = await sums('k5');
    const [stream = ''] = await streamsOf('k5');
    await closeUsageStreams(house);
    expect(await eventsOf(stream)).toHaveLength(5);
    house.clock.at += DAY + 3_600_000;
    await closeUsageStreams(house);
    expect((await eventsOf(stream)).map(({ type }) => type)).toEqual(['usage.LookupsTotalled.v1']);
    await totalUsage(house.store, stream, house.context());
    expect(await eventsOf(stream)).toHaveLength(1);
    expect(await sums('k5')).toEqual(before);
  });

  it('expires what is older than 400 days, and nothing else', async () => {
    const counter = createLookupCounter(house.store, house.clock);
    await counter.count(one('k6'));
    await counter.close();
    await sums('k6');
    const [stream = ''] = await streamsOf('k6');
    const forgotten: string[] = [];
    const forget = async (before: string) => void forgotten.push(before);
    house.clock.at += 400 * DAY;
    await expireUsageStreams(house, forget);
    expect(await eventsOf(stream)).toHaveLength(1);
    house.clock.at += DAY;
    await expireUsageStreams(house, forget);
    expect(await eventsOf(stream)).toEqual([]);
    expect(forgotten.at(-1)).toBe(new Date(house.clock.now() - 400 * DAY).toISOString().slice(0, 10));
    expect(day()).not.toBe(forgotten.at(-1));
  });
});
