import type { DatabasePool, sql } from 'slonik';
import { expect, it, vi } from 'vitest';
import { BackendTimeout } from '../../http/failures.ts';
import { answerWaitMs, chargeAnswer, onBehalfOf } from '../../http/on-behalf-of.ts';
import { POOL_SIZE } from '../../platform/slonik.ts';
import { fairPool } from '../../queries/fair-pool.ts';

const ANNA = 'partner anna';
const BEN = 'partner ben';

/** A pool whose queries end when the test says so. */
const slowPool = (share: Parameters<typeof fairPool>[1]) => {
  const running: { partner: string; end: (failure?: Error) => void }[] = [];
  const query = (partner: string) =>
    new Promise((resolve, reject) => {
      running.push({ partner, end: (failure) => (failure ? reject(failure) : resolve([])) });
    });
  const db = fairPool({ any: query } as unknown as DatabasePool, share);
  const ask = (partner: string) =>
    onBehalfOf(partner, async () => {
      await Promise.resolve();
      return db.any(partner as unknown as ReturnType<typeof sql.unsafe>);
    });
  return { running, ask, of: () => running.map(({ partner }) => partner), db };
};

const turn = () => new Promise((resolve) => setImmediate(resolve));

it("a partner's queries wait for each other, and not for those of other partners", async () => {
  const { running, ask, of, db } = slowPool({ atOnce: 2, waiting: 10, waitMs: 10_000 });
  const asked = [ask(ANNA), ask(ANNA), ask(ANNA), ask(BEN)];
  // Without a partner: the service's own query.
  asked.push(db.any('itself' as unknown as ReturnType<typeof sql.unsafe>) as Promise<never>);
  await turn();
  expect(of().sort()).toEqual(['itself', ANNA, ANNA, BEN].sort());
  running.find(({ partner }) => partner === ANNA)?.end();
  await turn();
  expect(of().filter((partner) => partner === ANNA)).toHaveLength(3);
  for (const { end } of running) end();
  await Promise.all(asked);
});

it('a failed query does not block later ones', async () => {
  const { running, ask } = slowPool({ atOnce: 1, waiting: 10, waitMs: 10_000 });
  const first = ask(ANNA);
  const second = ask(ANNA);
  await turn();
  running[0]?.end(new Error('the query fails'));
  await expect(first).rejects.toThrow('the query fails');
  await turn();
  running[1]?.end();
  await second;
  expect(running).toHaveLength(2);
});

it("a partner's queries are refused when too many wait, or when they have waited too long", async () => {
  const { running, ask } = slowPool({ atOnce: 1, waiting: 1, waitMs: 20 });
  const first = ask(ANNA);
  const second = ask(ANNA);
  await expect(ask(ANNA)).rejects.toThrow(BackendTimeout);
  await expect(second).rejects.toThrow(BackendTimeout);
  running[0]?.end();
  await first;
  const next = ask(ANNA);
  await turn();
  running[1]?.end();
  await next;
});

it('a partner whose answers are long waits before its next query, and no other partner does', async () => {
  const { running, ask, of } = slowPool({ atOnce: 2, waiting: 10, waitMs: 10_000 });
  const long = 'partner with long answers';
  for (let n = 0; n < 10; n += 1) chargeAnswer(long, 1_048_576);
  for (let n = 0; n < 10_000; n += 1) chargeAnswer(BEN, 1_000);
  expect(answerWaitMs(long)).toBeGreaterThan(100);
  expect(answerWaitMs(BEN)).toBe(0);
  const asked = [ask(long), ask(BEN)];
  await turn();
  expect(of()).toEqual([BEN]);
  await vi.waitUntil(() => running.length === 2, { timeout: 10_000 });
  for (const { end } of running) end();
  await Promise.all(asked);
});

it('no query waits inside the pool, which may forget it when PostgreSQL crashes', async () => {
  const { running, ask, of } = slowPool({ atOnce: 2, waiting: 10, waitMs: 10_000 });
  const partners = Array.from({ length: POOL_SIZE + 2 }, (_, index) => `partner ${index}`);
  const asked = Promise.allSettled(partners.map(ask));
  await turn();
  expect(of()).toHaveLength(POOL_SIZE);
  running[0]?.end();
  running[1]?.end(new Error('the database system is in recovery mode'));
  await turn();
  expect(of()).toHaveLength(POOL_SIZE + 2);
  for (const { end } of running) end();
  await asked;
});
