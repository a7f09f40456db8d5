import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { openPool } from '../../platform/postgres/pool.ts';
import {
  type DeliveryClaim,
  DeliveryClaims,
  HeldClaims,
  type Taken,
} from '../../processors/webhooks/delivery/claims.ts';
import { insertEndpoint, insertPendingDeliveries } from '../support/pending-deliveries.ts';
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
      let now = from;
      for (let againAt = from; againAt < from + 10 * SECOND; ) {
        now = Math.max(now, againAt);
        const taken = await take(now, count);
        const delivered = taken.claims.map(({ delivery_id }) => delivery_id);
        await stack.pool.query(`delete from read.webhook_delivery where delivery_id = any ($1)`, [delivered]);
        claimed.push(...delivered);
        againAt = taken.againAt;
      }
      return { claimed: new Set(claimed).size };
    },
  };
};

describe.each(['expired', 'not applied'] as const)('deliveries that are due and %s', (kind) => {
  it('do not hold up the delivery behind 20,000 of them', async () => {
    const one = await endpoint();
    await one.add(kind, 20_000);
    await one.add('claimable', 50);
    expect(await one.poll(NOW)).toMatchObject({ claimed: 50 });
    expect(await one.take(NOW + SECOND)).toMatchObject({ claims: [], againAt: NEVER });
  });
});

it('claims a delivery that a fast clock recorded an hour ahead', async () => {
  const one = await endpoint();
  await one.add('expired', 900, NOW + HOUR);
  await one.add('claimable', 1, NOW + 2 * HOUR);
  expect((await one.take(NOW)).claims).toMatchObject([{ ahead: true }]);
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

it('claims due-time first once the read model has caught up', async () => {
  const one = await endpoint();
  await one.add('not applied', 5);
  await one.add('claimable', 5);
  await one.applied(APPLIED + 1);
  const { claims } = await one.take(NOW, 6);
  const due = await stack.pool.query(
    'select next_attempt_at from read.webhook_delivery where delivery_id = any ($1)',
    [claims.map(({ delivery_id }) => delivery_id)],
  );
  const times = due.rows.map(({ next_attempt_at }) => Number(next_attempt_at));
  expect(times.toSorted()).toEqual([...Array(5).fill(Math.min(...times)), Math.min(...times) + SECOND]);
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

it('claims deliveries of an endpoint without reading the claims of others', async () => {
  const one = openPool(stack.url, pino({ level: 'silent' }), { max: 1 });
  const projection = randomUUID();
  const endpoint = await insertEndpoint(one, 10);
  await one.query('insert into read.projection (name, position) values ($1, 100)', [projection]);
  await insertPendingDeliveries(one, endpoint, { count: 10, recordedAt: NOW });
  await one.query(
    `insert into work.delivery_claim (delivery_id, cycle, attempt, webhook_id, holder, running, lease_until)
     select gen_random_uuid(), 1, 1, gen_random_uuid(), gen_random_uuid(), true, $1 from generate_series(1, 3000)`,
    [new Date(NOW + RULES.leaseMs)],
  );
  await one.query('analyze work.delivery_claim, read.webhook_delivery');
  const readClaims = async (): Promise<number> => {
    await one.query('select pg_stat_force_next_flush()');
    const { rows } = await one.query(
      `select (t.seq_tup_read + sum(i.idx_tup_read))::int as read
       from pg_stat_user_tables t join pg_stat_user_indexes i using (relid)
       where t.relid = 'work.delivery_claim'::regclass group by t.seq_tup_read`,
    );
    return rows[0].read;
  };
  const claims = new DeliveryClaims(one, { ...RULES, projections: [projection] });
  const before = await readClaims();
  const [taken] = await claims.take([{ webhookId: endpoint.webhookId, count: 5 }], NOW);
  expect(taken?.claims).toHaveLength(5);
  expect((await readClaims()) - before).toBeLessThan(100);
  await one.end();
});

it('releases claims again whose release failed', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const release = vi
    .fn<DeliveryClaims['release']>(async () => undefined)
    .mockRejectedValueOnce('connection lost');
  const held = new HeldClaims({
    claims: { release } as unknown as DeliveryClaims,
    clock: { now: () => 0 },
    log: pino({ level: 'silent' }),
    projected: async () => true,
  });
  const claims = ['first', 'second'].map((delivery_id) => ({ delivery_id }) as DeliveryClaim);
  for (const claim of claims) held.release(claim);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(release.mock.calls).toEqual([[claims], [claims]]);
  await held.stop();
  expect(release).toHaveBeenCalledTimes(2);
});
