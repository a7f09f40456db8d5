import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { createBatcher } from '../../commands/batcher.ts';
import { accept, type Decider, refuse } from '../../domain/kernel/decider.ts';
import {
  AppendTooLarge,
  MAX_APPEND_BYTES,
  OutcomeUnknown,
  StoreBusy,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import { type Fate, STEADY, unsteadyStore } from '../support/unsteady-store.ts';

type Event = { type: 'test.Taken.v1'; data: { id: number; padding: string } };
interface TakeSlot {
  readonly id: number;
  readonly bytes: number;
}
type State = ReadonlySet<number>;

const SLOTS = 100;
const schemas = { 'test.Taken.v1': z.object({ id: z.int(), padding: z.string() }) };
/** Takes one of a hundred slots for an id, once. */
const decider: Decider<State, TakeSlot, Event, 'full'> = {
  initial: new Set(),
  decide: ({ id, bytes }, state) => {
    if (id < 0) throw new RangeError('a bug');
    if (state.has(id)) return accept([]);
    if (state.size >= SLOTS) return refuse('full');
    return accept([{ type: 'test.Taken.v1', data: { id, padding: 'x'.repeat(bytes) } }]);
  },
  evolve: (state, { data: { id } }) => new Set([...state, id]),
};

const STREAM = 'test-stream';
const context = { correlationId: 'c', causationId: 'c', at: Date.parse('2026-03-01T12:00:00.000Z') };
beforeEach(() => {
  vi.useFakeTimers({ now: context.at });
});
afterEach(() => {
  vi.useRealTimers();
});

const open = (fateOf: () => Fate = () => STEADY) => {
  const store = unsteadyStore(fateOf);
  const batcher = () => createBatcher(store.store, { schemas, decider });
  const own = batcher();
  const take = (id: number, bytes = 10, by = own) =>
    by
      .submitCommand(STREAM, { id, bytes }, context, (state) => state.size)
      .then(
        (result) => (result.ok ? (result.value.changed ? 'taken' : 'there') : result.refusal),
        (error: unknown) => error,
      );
  const ids = () => store.events().map(({ data }) => (data as { id: number }).id);
  return { store, batcher, take, ids };
};
const settled = async <T>(work: Promise<T>): Promise<T> => {
  await vi.advanceTimersByTimeAsync(120_000);
  return work;
};

describe('a batch of commands', () => {
  it('is split by bytes: 90 commands of 13 KB succeed in two appends', async () => {
    const { store, take, ids } = open();
    const slots = await settled(Promise.all(Array.from({ length: 90 }, (_, id) => take(id, 13_000))));
    expect(new Set(slots)).toEqual(new Set(['taken']));
    expect(ids()).toEqual(Array.from({ length: 90 }, (_, id) => id));
    expect(store.appends()).toBe(2);
  });

  it('refuses a command that alone exceeds an append and appends the others', async () => {
    const { take, ids } = open();
    const work = Promise.all([take(1), take(2, MAX_APPEND_BYTES), take(3)]);
    const [first, tooLarge, last] = await settled(work);
    expect([first, last]).toEqual(['taken', 'taken']);
    expect(tooLarge).toBeInstanceOf(AppendTooLarge);
    expect(ids()).toEqual([1, 3]);
  });

  it('answers refusals that were decided before a command that is too large', async () => {
    const { take } = open();
    await settled(Promise.all(Array.from({ length: SLOTS - 1 }, (_, id) => take(id))));
    const [there, tooLarge] = await settled(Promise.all([take(0), take(500, MAX_APPEND_BYTES)]));
    expect(there).toBe('there');
    expect(tooLarge).toBeInstanceOf(AppendTooLarge);
  });

  it('rejects only the command that throws', async () => {
    const { take, ids } = open();
    const [first, bug, last] = await settled(Promise.all([take(1), take(-1), take(3)]));
    expect([first, last]).toEqual(['taken', 'taken']);
    expect(bug).toBeInstanceOf(RangeError);
    expect(ids()).toEqual([1, 3]);
  });
});

describe('a stream with concurrent writers', () => {
  it('is read again until the command fits', async () => {
    const { batcher, take, ids } = open();
    const [here, there] = [batcher(), batcher()];
    await settled(take(1, 10, here));
    await settled(take(2, 10, there));
    expect(await settled(take(3, 10, here))).toBe('taken');
    expect(ids()).toEqual([1, 2, 3]);
  });

  it('ends a command as StoreBusy, never as a conflict, when it refuses for seconds, without a busy loop', async () => {
    const store = unsteadyStore(() => STEADY);
    let appends = 0;
    const refusing = {
      ...store.store,
      append: async () => {
        appends += 1;
        throw new WrongExpectedRevision(STREAM, 7);
      },
    };
    const batcher = createBatcher(refusing, { schemas, decider });
    const began = performance.now();
    let tookMs = 0;
    const answered = batcher
      .submitCommand(STREAM, { id: 1, bytes: 1 }, context, () => null)
      .catch((error: unknown) => {
        tookMs = performance.now() - began;
        return error;
      });
    expect(await settled(answered)).toBeInstanceOf(StoreBusy);
    expect(tookMs).toBeGreaterThanOrEqual(2_000);
    expect(tookMs).toBeLessThan(2_500);
    expect(appends).toBeGreaterThanOrEqual(12);
    expect(appends).toBeLessThan(100);
  });
});

describe('a store that hangs, fails and answers late at random', () => {
  const ms = (max: number) => fc.integer({ min: 0, max });
  const fate: fc.Arbitrary<Fate> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ is: fc.constant('taken' as const), landsIn: ms(20), answersIn: ms(20) }),
    },
    fc.record({ is: fc.constant('unknown' as const), landsIn: fc.option(ms(3_000)), answersIn: ms(4_000) }),
    fc.record({
      is: fc.constant('refused' as const),
      as: fc.constantFrom('busy' as const, 'unavailable' as const),
    }),
  );
  const command = fc.record({ id: ms(130), bytes: ms(200_000), process: ms(1), pauseMs: ms(200) });

  it("holds each event once, keeps the limit, and each command's result is true", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(command, { minLength: 1, maxLength: 150 }),
        fc.array(fate, { maxLength: 40 }),
        async (commands, fates) => {
          let n = 0;
          const { batcher, take, ids } = open(() => {
            n += 1;
            return fates[n - 1] ?? STEADY;
          });
          const processes = [batcher(), batcher()];
          const answered = [];
          for (const { id, bytes, process, pauseMs } of commands) {
            answered.push(take(id, bytes, processes[process]));
            if (pauseMs > 150) await vi.advanceTimersByTimeAsync(pauseMs);
          }
          const results = await settled(Promise.all(answered));
          const there = new Set(ids());
          expect(ids()).toHaveLength(there.size);
          expect(there.size).toBeLessThanOrEqual(SLOTS);
          const mayBe = new Set(
            commands.filter((_, i) => results[i] instanceof OutcomeUnknown).map(({ id }) => id),
          );
          for (const [i, result] of results.entries()) {
            const { id } = commands[i] as { id: number };
            if (result === 'taken' || result === 'there') expect(there.has(id)).toBe(true);
            expect(result).not.toBeInstanceOf(WrongExpectedRevision);
          }
          const takenBy = Map.groupBy(commands.keys(), (i) => commands[i]?.id ?? -1);
          for (const [id, by] of takenBy) {
            const taken = [...by].filter((i) => results[i] === 'taken').length;
            expect(taken).toBeLessThanOrEqual(1);
            if (there.has(id) && taken === 0) expect(mayBe.has(id)).toBe(true);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});

it('is read once for all concurrent commands on an unknown stream', async () => {
  const { store, batcher, take } = open();
  await settled(Promise.all([take(1), take(2)]));
  const readStream = vi.spyOn(store.store, 'readStream');
  const fresh = batcher();
  const sizes = await settled(
    Promise.all(Array.from({ length: 5 }, () => fresh.readState(STREAM, (state) => state.size))),
  );
  expect(sizes).toEqual([2, 2, 2, 2, 2]);
  const whole = readStream.mock.calls.filter(([, options]) => !options?.from);
  expect(whole).toHaveLength(1);
});
