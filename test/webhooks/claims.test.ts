import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { type ClaimResult, DeliveryClaims } from '../../processors/webhooks/delivery/claims.ts';
import { insertEndpoint, insertPendingDeliveries } from '../support/pending-deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const SECOND = 1_000;
const APPLIED = 1_000;
const RULES = {
  holder: randomUUID(),
  leaseMs: 30_000,
  projections: [],
  sources: [],
  concurrency: 100_000,
  startsPerSecond: 1e9,
  probeEveryMs: 60_000,
};
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
  const claims = (pool: Pick<pg.Pool, 'query'>, sources: readonly string[]) =>
    new DeliveryClaims(pool as pg.Pool, {
      ...RULES,
      holder: randomUUID(),
      projections: [projection],
      sources,
    });
  const take = async (
    now: number,
    count = 32,
    pool: Pick<pg.Pool, 'query'> = stack.pool,
    sources: readonly string[] = [],
  ): Promise<ClaimResult> => {
    const [taken] = await claims(pool, sources).take([{ webhookId: added.webhookId, count }], now);
    if (!taken) throw new Error('the endpoint is missing');
    return taken;
  };
  return {
    webhookId: added.webhookId,
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

it('claims a delivery that a fast clock recorded an hour ahead', async () => {
  const one = await endpoint();
  await one.add('expired', 900, NOW + HOUR);
  await one.add('claimable', 1, NOW + 2 * HOUR);
  expect((await one.take(NOW)).claims).toMatchObject([{ ahead: true }]);
});

it('claims a delivery once the read models of its source have applied the event that it speaks of', async () => {
  const { webhookId, ...one } = await endpoint();
  await one.add('claimable', 3);
  await stack.pool.query('update read.webhook_health set fanned_out_to = $2 where webhook_id = $1', [
    webhookId,
    APPLIED - 10,
  ]);
  const source = randomUUID();
  const claimedWithSourceAt = async (position: number | null): Promise<number | undefined> => {
    await stack.pool.query(
      `insert into read.projection (name, position) values ($1, $2)
       on conflict (name) do update set position = excluded.position`,
      [source, position],
    );
    return (await one.take(NOW, 1, stack.pool, [source])).claims.length;
  };
  expect(await claimedWithSourceAt(null)).toBe(0);
  expect(await claimedWithSourceAt(APPLIED - 11)).toBe(0);
  expect(await claimedWithSourceAt(APPLIED - 10)).toBe(1);
  // Newer events of the endpoint do not hold back a delivery that the read models of the sources have passed.
  await stack.pool.query('update read.webhook_health set fanned_out_to = $2 where webhook_id = $1', [
    webhookId,
    APPLIED + 50,
  ]);
  expect(await claimedWithSourceAt(APPLIED - 1)).toBe(0);
  expect(await claimedWithSourceAt(APPLIED)).toBe(1);
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
