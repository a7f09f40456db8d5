import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLookupCounter, type LookupCounter } from '../../commands/usage/count-calls.ts';
import { CountNotDurable } from '../../commands/usage/group-counter.ts';
import type { UsageEvent } from '../../domain/usage/events.ts';
import { type Fate, STEADY, unsteadyStore } from '../support/unsteady-store.ts';

const NOON = Date.parse('2026-03-01T12:00:00.000Z');
const clock = { now: () => NOON };
const LATER = 120_000;

beforeEach(() => {
  vi.useFakeTimers({ now: NOON });
});
afterEach(() => {
  vi.useRealTimers();
});

const lookup = (keyId: string) => ({ keyId, outcome: 'isp', served: false, durationMs: 1 }) as const;

/** Counts for a key and records the outcome and its time. */
const count = (counter: LookupCounter, keyId = 'k') => {
  const counted: { as: 'nothing' | 'durable' | 'refused'; afterMs: number } = { as: 'nothing', afterMs: 0 };
  const began = performance.now();
  const settle = (as: 'durable' | 'refused') => () =>
    Object.assign(counted, { as, afterMs: performance.now() - began });
  counter.count(lookup(keyId)).then(settle('durable'), (error: unknown) => {
    if (!(error instanceof CountNotDurable)) throw error;
    settle('refused')();
  });
  return counted;
};

type Store = ReturnType<typeof unsteadyStore>;
/** What the read model would show for a key. */
const usage = (store: Store, keyId = 'k'): number => {
  let requests = 0;
  for (const stored of store.events()) {
    const { type, data } = stored as unknown as UsageEvent;
    if (type !== 'usage.LookupsCounted.v1' && type !== 'usage.LookupsCorrected.v1') continue;
    const sign = type === 'usage.LookupsCounted.v1' ? 1 : -1;
    for (const [key, , , n] of data.counts) if (key === keyId) requests += sign * n;
  }
  return requests;
};

const LANES = [1, 4];

describe.each(LANES)('the group commit of counts, with %i appends side by side', (lanes) => {
  it('shares one append among the counts of a turn and the next append among later counts', async () => {
    const store = unsteadyStore(() => ({ is: 'taken', landsIn: 5, answersIn: 10 }), lanes);
    const counter = createLookupCounter(store.store, clock);
    const first = [count(counter), count(counter)];
    await vi.advanceTimersByTimeAsync(5);
    const second = [count(counter), count(counter)];
    await vi.advanceTimersByTimeAsync(100);
    expect([...first, ...second].map(({ as }) => as)).toEqual(Array(4).fill('durable'));
    expect(store.appends()).toBe(2);
    expect(usage(store)).toBe(4);
  });

  it('refuses a count after four seconds and corrects it when it lands later', async () => {
    const store = unsteadyStore(() => ({ is: 'taken', landsIn: 6_000, answersIn: 6_000 }), lanes);
    const counted = count(createLookupCounter(store.store, clock));
    await vi.advanceTimersByTimeAsync(4_200);
    expect(counted.as).toBe('refused');
    expect(counted.afterMs).toBeGreaterThanOrEqual(4_000);
    await vi.advanceTimersByTimeAsync(LATER);
    expect(store.events().map(({ type }) => type)).toContain('usage.LookupsCounted.v1');
    expect(usage(store)).toBe(0);
  });

  it('refuses a count after two seconds when no append has begun for it, and never writes it', async () => {
    const store = unsteadyStore(() => ({ is: 'refused', as: 'busy' }), lanes);
    const counted = count(createLookupCounter(store.store, clock));
    await vi.advanceTimersByTimeAsync(LATER);
    expect(counted.as).toBe('refused');
    expect(counted.afterMs).toBeGreaterThanOrEqual(2_000);
    expect(counted.afterMs).toBeLessThanOrEqual(2_300);
    expect(store.events()).toEqual([]);
  });

  it('gives each count its own two seconds, however long others have waited', async () => {
    let fate: Fate = { is: 'refused', as: 'busy' };
    const store = unsteadyStore(() => fate, lanes);
    const counter = createLookupCounter(store.store, clock);
    const early = count(counter);
    await vi.advanceTimersByTimeAsync(1_900);
    const late = count(counter);
    await vi.advanceTimersByTimeAsync(400);
    expect([early.as, late.as]).toEqual(['refused', 'nothing']);
    fate = STEADY;
    await vi.advanceTimersByTimeAsync(400);
    expect(late.as).toBe('durable');
    expect(usage(store)).toBe(1);
  });
});

describe('the group commit of counts on a store that commits side by side', () => {
  it('begins an append while others are under way, on a stream of its own, as many as the store commits', async () => {
    const store = unsteadyStore(() => ({ is: 'taken', landsIn: 50, answersIn: 100 }), 3);
    const counter = createLookupCounter(store.store, clock);
    const counted = [];
    for (let n = 0; n < 5; n += 1) {
      counted.push(count(counter));
      await vi.advanceTimersByTimeAsync(5);
    }
    expect(store.appends()).toBe(3);
    await vi.advanceTimersByTimeAsync(300);
    // The last two shared one.
    expect(store.appends()).toBe(4);
    expect(counted.map(({ as }) => as)).toEqual(Array(5).fill('durable'));
    expect(new Set(store.events().map(({ stream }) => stream)).size).toBe(3);
    expect(usage(store)).toBe(5);
    await counter.close();
  });
});

describe.each(LANES)(
  'a store that hangs, fails and answers late at random, with %i appends side by side',
  (lanes) => {
    const ms = (max: number) => fc.integer({ min: 0, max });
    const fate: fc.Arbitrary<Fate> = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ is: fc.constant('taken' as const), landsIn: ms(20), answersIn: ms(20) }),
      },
      fc.record({ is: fc.constant('taken' as const), landsIn: ms(5_000), answersIn: ms(6_000) }),
      fc.record({
        is: fc.constant('unknown' as const),
        landsIn: fc.option(ms(12_000)),
        answersIn: ms(6_000),
      }),
      fc.record({
        is: fc.constant('refused' as const),
        as: fc.constantFrom('busy' as const, 'unavailable' as const),
      }),
    );
    /** Concurrent counts, and the pause after them. */
    const burst = fc.record({ counts: fc.integer({ min: 1, max: 30 }), pauseMs: ms(3_000) });

    it('holds exactly the counts that were acknowledged, each acknowledged within its limit', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(burst, { minLength: 1, maxLength: 12 }),
          fc.array(fate, { minLength: 1, maxLength: 30 }),
          async (bursts, fates) => {
            let n = 0;
            const store = unsteadyStore(() => {
              n += 1;
              return fates[n - 1] ?? STEADY;
            }, lanes);
            const counter = createLookupCounter(store.store, clock);
            const counted: ReturnType<typeof count>[] = [];
            for (const { counts, pauseMs } of bursts) {
              for (let i = 0; i < counts; i += 1) counted.push(count(counter));
              await vi.advanceTimersByTimeAsync(pauseMs);
            }
            await vi.advanceTimersByTimeAsync(LATER);
            expect(counted.filter(({ as }) => as === 'nothing')).toEqual([]);
            expect(usage(store)).toBe(counted.filter(({ as }) => as === 'durable').length);
            expect(Math.max(...counted.map(({ afterMs }) => afterMs))).toBeLessThanOrEqual(4_200);
            const refused = counted.filter(({ as }) => as === 'refused').map(({ afterMs }) => afterMs);
            // Counts share their limits with others of the same 100 ms.
            expect(Math.min(...refused, 2_000)).toBeGreaterThanOrEqual(1_900);
            // No append is still running.
            const before = store.appends();
            await vi.advanceTimersByTimeAsync(LATER);
            expect(store.appends()).toBe(before);
          },
        ),
        { numRuns: 150 },
      );
    });
  },
);
