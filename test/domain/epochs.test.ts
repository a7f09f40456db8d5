import { describe, expect, it } from 'vitest';
import { type Epoch, epochsDecider, resumeAt } from '../../domain/epochs/epochs.ts';

const FIRST = '0198a000-0000-7000-8000-000000000001';
const SECOND = '0198a000-0000-7000-8000-000000000002';
const begun = (epoch_id: string, after: number) => ({
  type: 'epochs.EpochBegan.v1' as const,
  data: { epoch_id, after: String(after) },
});
const given = (...events: ReturnType<typeof begun>[]) =>
  events.reduce(epochsDecider.evolve, epochsDecider.initial);
const is = (id: string) => (epoch: Epoch) => epoch.epoch_id === id;

describe('an epoch', () => {
  it('begins at the head of the log', () => {
    const decided = epochsDecider.decide(
      { type: 'Begin', epoch_id: SECOND, head: 70n },
      given(begun(FIRST, 40)),
    );
    expect(decided).toEqual({ ok: true, value: [begun(SECOND, 70)] });
  });

  it('begins once', () => {
    const decided = epochsDecider.decide(
      { type: 'Begin', epoch_id: FIRST, head: 70n },
      given(begun(FIRST, 40)),
    );
    expect(decided).toEqual({ ok: true, value: [] });
  });

  it('does not begin in an empty log', () => {
    const decided = epochsDecider.decide({ type: 'Begin', epoch_id: FIRST, head: null }, given());
    expect(decided).toEqual({ ok: false, refusal: 'empty_log' });
  });
});

describe('a reader', () => {
  const log = given(begun(FIRST, 40), begun(SECOND, 70));

  it('of the last epoch keeps its position', () => {
    expect(resumeAt(log, 90n, is(SECOND))).toBe(90n);
  });

  it('of an earlier epoch resumes no later than the start of the next one', () => {
    expect(resumeAt(log, 90n, is(FIRST))).toBe(70n);
    expect(resumeAt(log, 60n, is(FIRST))).toBe(60n);
    expect(resumeAt(log, 90n, null)).toBe(40n);
    expect(resumeAt(log, 30n, null)).toBe(30n);
  });

  it('of a lost epoch resumes no later than the start of any epoch', () => {
    expect(resumeAt(log, 90n, is('lost'))).toBe(40n);
    expect(resumeAt(log, 30n, is('lost'))).toBe(30n);
    expect(resumeAt([], 30n, is('lost'))).toBe(0n);
  });

  it('of a log that was never restored keeps its position', () => {
    expect(resumeAt([], 90n, null)).toBe(90n);
  });
});
