import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Claim, type DueAttempts, startClaimLoop } from '../../processors/claims.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  await stack.rows(
    'create table public.job (item text primary key, attempts int not null default 0, due timestamptz)',
  );
});
beforeEach(() => stack.rows('truncate public.job, work.claim'));
afterAll(() => stack.close());

const LEASE_MS = 60_000;
const DUE: DueAttempts = {
  name: 'claim_test_jobs',
  table: 'public.job',
  key: 'item',
  cycle: '0',
  attempt: 'w.attempts + 1',
  dueAt: 'w.due',
  recordedAt: 'null::timestamptz',
  partner: 'null::uuid',
  mark: 'enrichment',
};
const add = (count: number) =>
  stack.rows(`insert into public.job (item, due) select 'job ' || n, $1 from generate_series(1, $2::int) n`, [
    new Date(stack.clock.now()),
    count,
  ]);
const done = async ({ item }: Claim): Promise<null> => {
  await stack.rows('delete from public.job where item = $1', [item]);
  return null;
};
const left = async () => (await stack.rows('select from public.job')).length;
const start = (
  attempt: (claim: Claim, stopping: AbortSignal) => Promise<unknown>,
  over: {
    readonly heldBack?: () => readonly string[];
    readonly probed?: () => string | null;
  } = {},
) => {
  const failed: string[] = [];
  const { pool, clock } = stack;
  const onFailed = (_error: unknown, { item }: Claim) => void failed.push(item);
  const loop = startClaimLoop({
    ...{ pool, clock, due: DUE, leaseMs: LEASE_MS, slots: 4, perPartner: 4, onFailed, ...over },
    attempt: async (...args) => ((await attempt(...args)) as string | undefined) ?? null,
  });
  return { ...loop, failed };
};

it('makes each attempt once over three processes, never more than its slots at a time', async () => {
  await add(40);
  const made: string[] = [];
  const running = [0, 0, 0];
  const most = [0, 0, 0];
  const loops = running.map((_, n) =>
    start(async (claim) => {
      running[n] = (running[n] ?? 0) + 1;
      most[n] = Math.max(most[n] ?? 0, running[n]);
      made.push(claim.item);
      await done(claim);
      running[n] -= 1;
    }),
  );
  await until('all jobs are done', async () => (await left()) === 0);
  for (const loop of loops) await loop.stop();
  expect(made).toHaveLength(40);
  expect(new Set(made).size).toBe(40);
  for (const count of most) expect(count).toBeLessThanOrEqual(4);
});

it('makes an attempt that was held back as soon as what held it back can be used', async () => {
  await add(3);
  const held: string[] = [];
  let isDown = true;
  const heldBack = () => (isDown && held.length === 3 ? ['a provider'] : []);
  const attempt = async (claim: Claim): Promise<string | null> => {
    if (!isDown) return done(claim);
    held.push(claim.item);
    return 'a provider';
  };
  const loop = start(attempt, { heldBack });
  await until('all are held back', async () => {
    const rows = await stack.rows("select from work.claim where held_by = 'a provider'");
    return rows.length === 3;
  });
  await start(attempt, { heldBack }).stop();
  expect(held).toHaveLength(3);
  isDown = false;
  loop.nudge();
  await until('all jobs are done', async () => (await left()) === 0);
  await loop.stop();
});

it('makes one attempt as a probe while the others are held back: of those that failed least the newest', async () => {
  await stack.rows(
    "insert into public.job (item, attempts, due) select 'failed ' || n, 3, $1 from generate_series(1, 6) n",
    [new Date(stack.clock.now())],
  );
  const held: string[] = [];
  const probes: string[] = [];
  let hasProbe = false;
  const attempt = async (claim: Claim): Promise<string | null> => {
    if (!claim.probe) {
      held.push(claim.item);
      return 'a provider';
    }
    hasProbe = false;
    probes.push(claim.item);
    return done(claim);
  };
  const loop = start(attempt, {
    heldBack: () => (held.length > 0 ? ['a provider'] : []),
    probed: () => (hasProbe ? 'a provider' : null),
  });
  const isHeld = (count: number) =>
    until('all are held back', async () => {
      const rows = await stack.rows("select from work.claim where held_by = 'a provider'");
      return rows.length === count;
    });
  await isHeld(6);
  for (const item of ['first', 'second']) {
    stack.clock.advance(1_000);
    await stack.rows('insert into public.job (item, due) values ($1, $2)', [
      item,
      new Date(stack.clock.now()),
    ]);
    loop.nudge();
    await until('it is held back', async () => held.includes(item));
    await isHeld(held.length);
  }
  for (const expected of ['second', 'first', 'failed']) {
    hasProbe = true;
    loop.nudge();
    await until('the probe is made', async () => !hasProbe);
    expect(probes.at(-1)).toContain(expected);
  }
  await loop.stop();
  expect(probes).toHaveLength(3);
});

it('repeats a failed attempt after its lease, and not before', async () => {
  await add(1);
  let attempts = 0;
  const loop = start(async (claim) => {
    attempts += 1;
    if (attempts === 1) throw new Error('not recorded');
    await done(claim);
  });
  await until('it has failed', () => loop.failed.length === 1);
  stack.clock.advance(LEASE_MS - 1);
  // Its first poll begins at once, and its stop waits for what that claims.
  await start(async () => {
    attempts += 1;
  }).stop();
  expect(attempts).toBe(1);
  stack.clock.advance(2);
  loop.nudge();
  await until('it is done', async () => (await left()) === 0);
  expect(attempts).toBe(2);
  await loop.stop();
});

it('stops after the running attempts have ended, and tells them to stop', async () => {
  await add(2);
  const ended: string[] = [];
  const loop = start(async ({ item }, stopping) => {
    await new Promise((resolve) => stopping.addEventListener('abort', resolve));
    ended.push(item);
  });
  await until('both are claimed', async () => (await stack.rows('select from work.claim')).length === 2);
  await loop.stop();
  expect(ended).toHaveLength(2);
});
