import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Position } from '../../event-store/port.ts';
import { notify } from '../../platform/postgres/notifications.ts';
import { commitSteps, loadCheckpoints, type Step } from '../../projections/checkpoints.ts';
import { PROJECTED_CHANNEL } from '../../projections/progress.ts';
import type { Projection } from '../../projections/projection.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('notifies the position once the transaction is committed, and what projections notify in it', async () => {
  const { pool } = stack;
  await loadCheckpoints(pool, ['noting']);
  const lease = { name: 'noting group', number: '1', processId: randomUUID() };
  await pool.query('insert into work.lease (name, number, process_id) values ($1, $2, $3)', [
    lease.name,
    lease.number,
    lease.processId,
  ]);
  const apply: Projection['apply'] = (_events, db) => notify(db, 'noted', 'by the projection');
  const projection = { name: 'noting', apply } as unknown as Projection;
  const events = [{}] as unknown as Step['events'];
  const client = await stack.session(`listen noted; listen ${PROJECTED_CHANNEL}`);
  const received: (string | undefined)[] = [];
  client.on('notification', ({ payload }) => received.push(payload));

  await commitSteps(client, lease, [{ projection, from: null, passed: null, events }], 7n as Position);
  await client.query('select');
  expect(received.toSorted()).toEqual(['by the projection', '{"noting":"7"}']);
});
