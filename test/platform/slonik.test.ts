import type { DatabasePool, sql } from 'slonik';
import { expect, it } from 'vitest';
import { POOL_SIZE, queueQueries } from '../../platform/postgres/slonik.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('no query waits inside the pool, which may forget it when PostgreSQL crashes', async () => {
  const running: PromiseWithResolvers<unknown>[] = [];
  const any = (): Promise<unknown> => {
    const query = Promise.withResolvers<unknown>();
    running.push(query);
    return query.promise;
  };
  const db = queueQueries({ any } as unknown as DatabasePool);
  const asked = Array.from({ length: POOL_SIZE + 2 }, () =>
    db.any('a query' as unknown as ReturnType<typeof sql.unsafe>),
  );
  const settled = Promise.allSettled(asked);
  await turn();
  expect(running).toHaveLength(POOL_SIZE);
  running[0]?.resolve([]);
  running[1]?.reject(new Error('the database system is in recovery mode'));
  await turn();
  expect(running).toHaveLength(POOL_SIZE + 2);
  for (const { resolve } of running) resolve([]);
  await settled;
});
