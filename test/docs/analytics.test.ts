import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allProjections } from '../../projections/all.ts';
import { type Analyst, analystOf } from '../support/analysts.ts';
import { makeExamples } from '../support/examples.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const page = readFileSync(new URL('../../docs/analytics.md', import.meta.url), 'utf8');
const questions = [...page.matchAll(/^### (\d+)\. .+?```sql\n(.+?)```/gms)].map(([, number, sql]) => ({
  number: Number(number),
  sql: sql ?? '',
}));

/** By the number of the question; PostgreSQL's whole numbers arrive as text. */
const ANSWERS: Readonly<Record<number, object[]>> = {
  1: [
    { name: 'Anna', requests: '24', saved_percent: '66.7' },
    { name: 'Bert', requests: '4', saved_percent: '100.0' },
  ],
  2: [{ hour: new Date('2026-03-01T11:00:00Z'), errors: '4', mean_ms: '5.00' }],
  3: [
    { match_type: 'company', addresses: '2', stale: '1' },
    { match_type: 'isp', addresses: '1', stale: '0' },
    { match_type: 'unclassified', addresses: '1', stale: '0' },
  ],
  4: [{ industry: 'Software', addresses: '2', companies: '2' }],
  5: [
    { name: 'Anna', state: 'completed', reservations: '1', median_seconds: 60 },
    { name: 'Anna', state: 'reserved', reservations: '1', median_seconds: null },
    { name: 'Anna', state: 'settled', reservations: '1', median_seconds: 0 },
  ],
  6: [
    { name: 'shop', country: 'unknown', sessions: '1' },
    { name: 'site', country: 'DE', sessions: '2' },
    { name: 'site', country: 'US', sessions: '1' },
  ],
  7: [
    { name: 'shop', sessions: '1', reveals: '1', revealed_percent: '100.0' },
    { name: 'site', sessions: '2', reveals: '3', revealed_percent: '150.0' },
  ],
  8: [
    { company_name: 'Acme', reveals: '3', partners: '2' },
    { company_name: 'Beta', reveals: '1', partners: '1' },
  ],
  9: [
    { name: 'Anna', month: '2026-02', units: '1', reveals: '1', by_users: '0' },
    { name: 'Anna', month: '2026-03', units: '2', reveals: '3', by_users: '1' },
    { name: 'Bert', month: '2026-03', units: '1', reveals: '1', by_users: '0' },
  ],
  10: [
    {
      name: 'endpoint',
      outcome: 'timeout',
      http_status: null,
      attempts: '2',
      mean_ms: '100',
    },
    {
      name: 'endpoint',
      outcome: 'http_status',
      http_status: 500,
      attempts: '1',
      mean_ms: '100',
    },
  ],
  11: [
    { provider: 'vendor', calls: '40', failed: '4', companies: '20', taken: '20', mean_ms: '25' },
    { provider: 'directory', calls: '100', failed: '0', companies: '0', taken: '0', mean_ms: '1' },
    { provider: 'held-back', calls: '0', failed: '0', companies: '0', taken: '0', mean_ms: null },
  ],
};

let stack: TestStack;
let analyst: Analyst;
beforeAll(async () => {
  stack = await startTestStack();
  await makeExamples(stack.store);
  await stack.pool.query(
    `insert into work.provider_day (provider, day, company, isp, unknown, failed, not_asked, taken, duration_ms)
     values ('directory', '2026-03-01', 0, 40, 60, 0, 0, 0, 100), ('vendor', '2026-03-01', 10, 0, 8, 2, 0, 10, 500),
            ('vendor', '2026-03-02', 10, 0, 8, 2, 0, 10, 500), ('vendor', '2026-02-28', 9, 9, 9, 9, 9, 9, 9),
            ('held-back', '2026-03-01', 0, 0, 0, 0, 5, 0, 0)`,
  );
  const projecting = stack.project(allProjections);
  await stack.caughtUp(allProjections);
  await projecting.stop();
  analyst = await analystOf(stack.url);
});
afterAll(async () => {
  await analyst.leave();
  await stack.close();
});

describe('the questions of docs/analytics.md', () => {
  it('number eleven', () => {
    expect(questions.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it.each(questions)('number $number returns its answer to an analyst', async ({ number, sql }) => {
    expect(await analyst.rows(sql)).toEqual(ANSWERS[number]);
  });
});
