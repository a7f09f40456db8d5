import { expect, it } from 'vitest';
import { createWorkCapacity } from '../../commands/lookup/work-capacity.ts';

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

it('a full intake is reported in whole seconds and takes no slot', async () => {
  const { capacity, state } = aCapacity(1);
  state.intakeFull = true;
  expect(await capacity.admit('one', 'lookup')).toEqual({ ok: false, retryAfterSeconds: 2 });
  state.intakeFull = false;
  expect(await capacity.admit('two', 'reveal')).toMatchObject({ ok: true });
  expect(state.intake).toEqual(['lookup', 'reveal']);
});
