import { afterAll, beforeAll, expect, it } from 'vitest';
import { leadGroups } from '../../bin/groups.ts';
import type { Lease, Leases } from '../../platform/leases/leases.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it("a process that lost its lease of a group no longer reports the group's parts as stopped", async () => {
  await stack.pool.query(`insert into work.processor (name, stopped_by) values ('poisoned', 'an event')`);
  const stopped = new Set<string>();
  const led: { run?: (lease: Lease, signal: AbortSignal) => Promise<void> } = {};
  const leases: Pick<Leases, 'lead'> = {
    lead: (_name, run) => {
      led.run = run;
    },
  };
  const processor = { name: 'poisoned', prefixes: ['some-'], handle: async () => undefined };
  leadGroups(
    leases,
    [{ name: 'a group', projections: [], processors: [processor] }],
    { ...stack, databaseUrl: stack.url, processed: stack.progress },
    { onStopped: (name) => stopped.add(name), onRunning: (name) => stopped.delete(name) },
  );
  const ending = new AbortController();
  const lease = { name: 'a group', number: '1', processId: '00000000-0000-4000-8000-000000000000' };
  const ended = led.run?.(lease, ending.signal);
  await until('the part is reported as stopped', () => stopped.has('processor poisoned'));
  ending.abort();
  await ended;
  expect([...stopped]).toEqual([]);
});
