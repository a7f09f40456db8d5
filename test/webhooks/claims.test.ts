import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { DeliveryClaims, type Taken } from '../../processors/webhooks/claims.ts';
import { insertEndpoint, insertPendingDeliveries } from '../support/pending-deliveries.ts';
import { rowsReadSoFar } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const SECOND = 1_000;
const APPLIED = 1_000;
const RULES = {
  holder: randomUUID(),
  leaseMs: 30_000,
  projections: [],
  concurrency: 100_000,
  startsPerSecond: 1e9,
  probeEveryMs: 60_000,
};
const NEVER = Number.POSITIVE_INFINITY;

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

type Kind = 'claimable' | 'expired' | 'not applied';

/** An endpoint whose deliveries become due in the order in which they are added, those of one call at one instant. */
const endpoint = async () => {
  const added = await insertEndpoint(stack.pool);
  const projection = randomUUID();
  const applied = (position: number) =>
    stack.pool.query(
      `insert into read.projection (name, position) values ($1, $2)
       on conflict (name) do update set position = excluded.position`,
      [projection, position],
    );
  await applied(APPLIED);
  let due = NOW - DAY;
  const claims = (pool: Pick<pg.Pool, 'query'>) =>
    new DeliveryClaims(pool as pg.Pool, { ...RULES, holder: randomUUID(), projections: [projection] });
  const take = async (now: number, count = 32, pool: Pick<pg.Pool, 'query'> = stack.pool): Promise<Taken> => {
    const [taken] = await claims(pool).take([{ webhookId: added.webhookId, count }], now);
    if (!taken) throw new Error('the endpoint is missing');
    return taken;
  };
  return {
    applied,
    take,
    /** `recordedAt`: when its due time was recorded, an hour before it. */
    add: async (kind: Kind, count: number, recordedAt?: number) => {
      due += SECOND;
      await insertPendingDeliveries(stack.pool, added, {
        count,
        recordedAt: recordedAt ?? due,
        dueAt: recordedAt === undefined ? due : recordedAt + HOUR,
        payloadExpiresAt: kind === 'expired' ? NOW : NOW + DAY,
        position: kind === 'not applied' ? APPLIED + 1 : APPLIED,
      });
    },
    /** Polls and delivers as a worker does until an answer leaves the next poll to a notification, or to a later second. */
    poll: async (from: number, count = 32) => {
      const claimed: string[] = [];
      let [polls, now] = [0, from];
      for (let againAt = from; againAt < from + 10 * SECOND; polls += 1) {
        now = Math.max(now, againAt);
        const taken = await take(now, count);
        const delivered = taken.claims.map(({ delivery_id }) => delivery_id);
        await stack.pool.query(`delete from read.webhook_delivery where delivery_id = any ($1)`, [delivered]);
        claimed.push(...delivered);
        againAt = taken.againAt;
      }
      return { claimed: new Set(claimed).size, polls, ms: now - from };
    },
  };
};

/** The deliveries that a claim reads, of whatever endpoint. */
const deliveriesRead = async (claim: (client: pg.PoolClient) => Promise<unknown>): Promise<number> => {
  const client = await stack.pool.connect();
  const read = () => rowsReadSoFar(client, 'read.webhook_delivery');
  try {
    await client.query('begin');
    // The connection has counts of earlier transactions too.
    const before = await read();
    await claim(client);
    return (await read()) - before;
  } finally {
    await client.query('rollback');
    client.release();
  }
};

describe.each(['expired', 'not applied'] as const)('deliveries that are due and %s', (kind) => {
  it('are read in parts, however many an endpoint has', async () => {
    const one = await endpoint();
    await one.add(kind, 20_000);
    await one.add('claimable', 1);
    let now = NOW;
    for (let n = 0; n < 3; n += 1) {
      expect(await deliveriesRead((client) => one.take(now, 32, client))).toBeLessThan(4_000);
      now = Math.max(now, (await one.take(now)).againAt);
    }
  });

  it('are read in parts if a fast clock has recorded them, and a delivery that it recorded later is due', async () => {
    const one = await endpoint();
    await one.add(kind, 900, NOW + HOUR);
    await one.add('claimable', 1, NOW + 2 * HOUR);
    expect((await one.take(NOW)).claims).toMatchObject([{ ahead: true }]);
    await one.add(kind, 20_000, NOW + HOUR);
    expect(await deliveriesRead((client) => one.take(NOW, 32, client))).toBeLessThan(4_000);
  });

  it('hold up a delivery behind 20,000 of them for less than a second', async () => {
    const one = await endpoint();
    await one.add(kind, 20_000);
    await one.add('claimable', 50);
    const { claimed, polls, ms } = await one.poll(NOW);
    expect(claimed).toBe(50);
    expect(polls).toBeLessThan(25);
    expect(ms).toBeLessThan(SECOND);
  });

  it('leave the next poll to a notification once all of them have been read', async () => {
    const one = await endpoint();
    await one.add(kind, 5_000);
    expect((await one.poll(NOW)).polls).toBeLessThan(8);
    for (let s = 1; s < 9; s += 1) expect(await one.take(NOW + s * SECOND)).toMatchObject({ againAt: NEVER });
  });

  it('are read again from the first ten seconds later', async () => {
    const one = await endpoint();
    await one.add(kind, 5_000);
    await one.poll(NOW);
    const again = await one.poll(NOW + 11 * SECOND);
    expect((await one.poll(NOW + 12 * SECOND)).polls + again.polls).toBeLessThan(10);
    expect((await one.poll(NOW + 13 * SECOND)).polls).toBe(1);
  });
});

it('polls again soon for a new delivery that a read model has not reached, and not for an old one', async () => {
  const { add, take, applied } = await endpoint();
  await add('not applied', 1);
  const due = NOW - DAY + SECOND;
  expect(await take(due + 100)).toMatchObject({ claims: [], againAt: due + 200 });
  expect(await take(due + 2 * SECOND)).toMatchObject({ claims: [], againAt: NEVER });
  await applied(APPLIED + 1);
  expect((await take(due + 200)).claims).toHaveLength(1);
});

describe('a delivery that a poll has passed', () => {
  it('is claimed by the next poll, in its order, once the read model has caught up', async () => {
    const one = await endpoint();
    await one.add('not applied', 5_000);
    await one.poll(NOW);
    await one.applied(APPLIED + 1);
    expect((await one.poll(NOW + SECOND, 500)).claimed).toBe(5_000);
  });

  it('is claimed within ten seconds, between any number that cannot be claimed', async () => {
    const one = await endpoint();
    await one.add('expired', 3_000);
    await one.add('not applied', 10);
    await one.add('expired', 3_000);
    expect((await one.poll(NOW)).claimed).toBe(0);
    await one.applied(APPLIED + 1);
    const first = await one.poll(NOW + 11 * SECOND);
    expect((await one.poll(NOW + 12 * SECOND)).claimed + first.claimed).toBe(10);
  });
});

it('claims every delivery that can be claimed once, however they lie between others', async () => {
  const one = await endpoint();
  let claimable = 0;
  for (let n = 0; n < 30; n += 1) {
    const kind = (['claimable', 'expired', 'not applied'] as const)[(n * 7) % 3] ?? 'claimable';
    const count = 37 * ((n % 11) + 1);
    await one.add(kind, count);
    if (kind === 'claimable') claimable += count;
  }
  expect((await one.poll(NOW, 100)).claimed).toBe(claimable);
});

it('changes claims that are held by one statement at a time: two would lock the same rows in different orders', async () => {
  let underWay = 0;
  let most = 0;
  const query = async () => {
    underWay += 1;
    most = Math.max(most, underWay);
    await setImmediate();
    underWay -= 1;
    return { rows: [] };
  };
  const claims = new DeliveryClaims({ query } as unknown as pg.Pool, RULES);
  const changes = [claims.renew([], NOW), claims.recordEnded([]), claims.release([]), claims.renew([], NOW)];
  await Promise.all(changes);
  expect(most).toBe(1);
});
