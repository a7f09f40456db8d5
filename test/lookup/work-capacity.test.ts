import { expect, it } from 'vitest';
import { createWorkCapacity } from '../../commands/lookup/work-capacity.ts';
import type { Position } from '../../event-store/port.ts';

const AT = 7n as Position;

/** The capacity of one process; `outstanding` is the read model's set of unfinished addresses. */
const aCapacity = (limit: number, outstanding = new Set<string>()) => {
  const state = { counts: 0, intake: [] as string[], intakeFull: false };
  const applied = Promise.withResolvers<void>();
  const capacity = createWorkCapacity({
    admitIntake: async (purpose) => {
      state.intake.push(purpose);
      return state.intakeFull ? { retryMs: 1_500 } : null;
    },
    countOutstanding: async (except) => {
      state.counts += 1;
      return [...outstanding].filter((ip) => !except.includes(ip)).length;
    },
    outstandingLimit: limit,
    projected: () => applied.promise,
  });
  return { capacity, state, outstanding, applied };
};

it('admits exactly the limit of a hundred concurrent addresses', async () => {
  const { capacity } = aCapacity(10);
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) => capacity.admit(`ip ${n}`, 'lookup')),
  );
  expect(answers.filter(({ ok }) => ok)).toHaveLength(10);
  expect(answers.filter(({ ok }) => !ok)).toEqual(Array(90).fill({ ok: false, retryAfterSeconds: 15 }));
});

it('counts work that other processes have outstanding, and each address once', async () => {
  const { capacity } = aCapacity(10, new Set(['ip 0', 'ip 1', 'other 1', 'other 2', 'other 3']));
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => capacity.admit(`ip ${n}`, 'lookup')),
  );
  expect(answers.filter(({ ok }) => ok)).toHaveLength(7);
});

it('concurrent requests for one address share one slot and one turn of the intake', async () => {
  const { capacity, state } = aCapacity(1);
  const answers = await Promise.all(Array.from({ length: 20 }, () => capacity.admit('ip', 'lookup')));
  expect(answers.every(({ ok }) => ok)).toBe(true);
  expect(state.intake).toEqual(['lookup']);
});

it('a request beside a refused one for its address is refused too', async () => {
  const { capacity, state } = aCapacity(10);
  state.intakeFull = true;
  const refused = { ok: false, retryAfterSeconds: 2 };
  expect(await Promise.all([capacity.admit('ip', 'lookup'), capacity.admit('ip', 'lookup')])).toEqual([
    refused,
    refused,
  ]);
});

it('a request takes no slot where the intake or the outstanding work cannot be counted', async () => {
  const failing = ['one', 'two'];
  let failures = failing.length;
  const capacity = createWorkCapacity({
    admitIntake: async () => {
      failures -= 1;
      if (failures >= 0) throw new Error('no connection');
      return null;
    },
    countOutstanding: async () => 0,
    outstandingLimit: 1,
    projected: async () => undefined,
  });
  for (const ip of failing) await expect(capacity.admit(ip, 'lookup')).rejects.toThrow('no connection');
  expect(await capacity.admit('three', 'lookup')).toMatchObject({ ok: true });
});

it('a slot is free again when the submission failed, or once the read model has it', async () => {
  const { capacity, outstanding, applied } = aCapacity(1);
  const failed = await capacity.admit('one', 'lookup');
  expect(await capacity.admit('two', 'lookup')).toMatchObject({ ok: false });
  if (failed.ok) failed.finished(null);
  const submitted = await capacity.admit('two', 'lookup');
  expect(submitted.ok).toBe(true);
  if (submitted.ok) submitted.finished(AT);
  // Not projected yet: only this process knows of it.
  expect(await capacity.admit('three', 'lookup')).toMatchObject({ ok: false });
  outstanding.add('two');
  applied.resolve();
  await applied.promise;
  expect(await capacity.admit('three', 'lookup')).toMatchObject({ ok: false });
  outstanding.clear();
  expect(await capacity.admit('three', 'lookup')).toMatchObject({ ok: true });
});

it('a full intake is reported in whole seconds and takes no slot', async () => {
  const { capacity, state } = aCapacity(1);
  state.intakeFull = true;
  expect(await capacity.admit('one', 'lookup')).toEqual({ ok: false, retryAfterSeconds: 2 });
  state.intakeFull = false;
  expect(await capacity.admit('two', 'reveal')).toMatchObject({ ok: true });
  expect(state.intake).toEqual(['lookup', 'reveal']);
});

it.each([
  ['far below', 100_000],
  ['near', 60],
])('a burst %s the limit shares two counts of what is outstanding', async (_where, limit) => {
  const { capacity, state } = aCapacity(limit);
  await Promise.all(Array.from({ length: 50 }, (_, n) => capacity.admit(`ip ${n}`, 'lookup')));
  expect(state.counts).toBe(2);
});
