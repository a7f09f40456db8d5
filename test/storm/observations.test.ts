import { describe, expect, it } from 'vitest';
import { type InjectedFault, type Observation, recoveries } from './observations.ts';

const fault: InjectedFault = {
  name: 'a fault',
  startedAt: 1_000,
  liftedAt: 4_000,
  readyAt: 4_500,
  servedAt: null,
};
const request = (sentAt: number, endedAt: number, outcome: Observation['outcome']): Observation => ({
  kind: 'reveal',
  sentAt,
  endedAt,
  outcome,
});
const ofReveals = (observations: readonly Observation[], faults = [fault], until = 10_000) =>
  recoveries(observations, faults, until).filter(({ kind }) => kind === 'reveal');

describe('the recovery of a kind of request from a fault', () => {
  it('counts from the end of the fault to the first success of a request sent after it', () => {
    const observations = [
      request(500, 600, 'success'),
      request(1_500, 4_100, 'success'),
      request(4_200, 4_300, 'unavailable'),
      request(4_700, 5_000, 'success'),
      request(9_000, 9_100, 'success'),
    ];
    expect(ofReveals(observations)).toEqual([
      {
        fault: 'a fault',
        kind: 'reveal',
        longestGapSeconds: 4.1,
        afterEndSeconds: 1,
        unavailable: 1,
        cut: 0,
      },
    ]);
  });

  it('is null when no request succeeds before the next fault', () => {
    const next = { ...fault, name: 'the next fault', startedAt: 6_000, liftedAt: 6_500 };
    const observations = [request(2_000, 2_500, 'cut'), request(6_600, 6_800, 'success')];
    expect(ofReveals(observations, [fault, next])).toMatchObject([
      { fault: 'a fault', afterEndSeconds: null, longestGapSeconds: 5, cut: 1 },
      { fault: 'the next fault', afterEndSeconds: 0.3 },
    ]);
  });
});
