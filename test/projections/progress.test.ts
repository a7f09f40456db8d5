import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { Position } from '../../event-store/port.ts';
import { createProgress, PROJECTED_CHANNEL } from '../../projections/progress.ts';
import { eventually } from '../support/eventually.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('drops known positions of the read models when the PostgreSQL server that reported them is gone', async () => {
  const { pool, url } = stack;
  await pool.query(`insert into read.projection (name, position) values ('model', 5)`);
  const progress = createProgress({ url, pool });
  onTestFinished(() => progress.close());
  const reached = (position: number) => progress.reached(['model'], BigInt(position) as Position, 0);

  // Committed, notified, and undone by a crash: with synchronous_commit off, none of it reaches the disk.
  await eventually("the leader's position is received", () => {
    progress.advance({ model: 9n as Position });
    return reached(9);
  });
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'doorplate listen' and datname = current_database()`,
  );
  await eventually('nine is not reached any more', async () => !(await reached(9)));
  await eventually('five is', () => progress.reached(['model'], 5n as Position, 1_000));
  expect(await progress.reached(['model'], 9n as Position, 300)).toBe(false);
});

it('believes the table of positions, not a notification that any database user may have sent', async () => {
  const { pool, url } = stack;
  await pool.query(`insert into read.projection (name, position) values ('forged', 5)`);
  const progress = createProgress({ url, pool });
  onTestFinished(() => progress.close());
  const reached = (position: number, ms: number) =>
    progress.reached(['forged'], BigInt(position) as Position, ms);
  const notify = (position: number) =>
    pool.query('select pg_notify($1, $2)', [PROJECTED_CHANNEL, JSON.stringify({ forged: String(position) })]);

  await eventually('five is reached', () => reached(5, 1_000));
  await notify(1_000);
  await pool.query(`update read.projection set position = 6 where name = 'forged'`);
  await notify(6);
  expect(await reached(6, 5_000)).toBe(true);
  expect(await reached(1_000, 300)).toBe(false);
});
