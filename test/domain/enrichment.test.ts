import { describe, expect, it } from 'vitest';
import { enrichment } from '../../domain/lookup/enrichment.ts';
import { retryDelayMs } from '../../domain/lookup/schedule.ts';
import { given } from './deciding.ts';
import {
  ANNA,
  AT,
  BERT,
  completed,
  failed,
  IP,
  joined,
  requested,
  reservation,
  result,
} from './lookup-events.ts';

const submit = (by = reservation(), at = AT) => ({ type: 'Submit', ip: IP, reservation: by, at }) as const;
const STALE = { fresh_until: new Date(AT - 1).toISOString() };
const fail = (attempt: number, round = 1) =>
  ({
    type: 'Fail',
    round,
    attempt,
    failures: [{ provider: 'http', reason: 'timed out' }],
    at: AT,
    jitter: 0.5,
    baseMs: 15_000,
  }) as const;
const complete = (attempt: number, round = 1) =>
  ({ type: 'Complete', round, attempt, result: result() }) as const;

describe('submitting an address', () => {
  it('begins the first round where nothing is known', () => {
    given(enrichment, []).when(submit()).thenEvents([requested()]);
  });
  it('joins the round of another partner', () => {
    given(enrichment, [requested()])
      .when(submit(reservation(BERT)))
      .thenEvents([joined(reservation(BERT))]);
  });
  it('changes nothing where the partner waits already, with whichever reservation', () => {
    given(enrichment, [requested()])
      .when(submit(reservation(ANNA, 2)))
      .thenEvents([]);
  });
  it('changes nothing where a fresh result is saved', () => {
    given(enrichment, [requested(), completed()])
      .when(submit(reservation(BERT)))
      .thenEvents([]);
  });
  it('asks for a refresh of a stale result', () => {
    given(enrichment, [requested(), completed(STALE)])
      .when(submit(reservation(ANNA, 2)))
      .thenEvents([requested(2, 'refresh', reservation(ANNA, 2))]);
  });
  it('asks for the rest of an incomplete result', () => {
    given(enrichment, [requested(), completed({ match_type: 'isp', needs_company_enrichment: true })])
      .when(submit(reservation(ANNA, 2)))
      .thenEvents([requested(2, 'completion', reservation(ANNA, 2))]);
  });
  it('changes nothing for a reservation that has been settled, however late it comes', () => {
    given(enrichment, [requested(), completed(STALE)])
      .when(submit())
      .thenEvents([]);
  });
  it('works for a reveal, which has no reservation', () => {
    given(enrichment, [])
      .when({ type: 'Submit', ip: IP, reservation: null, at: AT })
      .thenEvents([requested(1, 'first', null)]);
    given(enrichment, [requested()])
      .when({ type: 'Submit', ip: IP, reservation: null, at: AT })
      .thenEvents([]);
  });
});

describe('an attempt', () => {
  it('that succeeds settles all who wait', () => {
    given(enrichment, [requested(), joined(reservation(BERT))])
      .when(complete(1))
      .thenEvents([completed({}, { settles: [reservation(), reservation(BERT)] })]);
  });
  it('that fails is due again after the base delay', () => {
    given(enrichment, [requested()])
      .when(fail(1))
      .thenEvents([failed(1)]);
  });
  it('that comes late, or twice, changes nothing', () => {
    given(enrichment, [requested(), failed(1)])
      .when(complete(1))
      .thenEvents([]);
    given(enrichment, [requested(), failed(1)])
      .when(fail(1))
      .thenEvents([]);
    given(enrichment, [requested(), completed()]).when(fail(1)).thenEvents([]);
    given(enrichment, [requested(), completed(STALE), requested(2, 'refresh')])
      .when(complete(1, 1))
      .thenEvents([]);
  });
  it('of a first enrichment is made until it succeeds', () => {
    const tries = [1, 2, 3, 4, 5, 6, 7].map((attempt) => failed(attempt));
    const decision = enrichment.decide(
      fail(8),
      [requested(), ...tries].reduce(enrichment.evolve, enrichment.initial),
    );
    expect(decision).toMatchObject({
      value: [{ type: 'lookup.EnrichmentAttemptFailed.v1', data: { attempt: 8 } }],
    });
  });
  it('of a refresh is the last one when it is the fifth', () => {
    const tries = [1, 2, 3, 4].map((attempt) => failed(attempt, 2));
    const state = [requested(), completed(STALE), requested(2, 'refresh'), ...tries];
    given(enrichment, state)
      .when(fail(5, 2))
      .thenEvents([
        {
          type: 'lookup.EnrichmentGaveUp.v1',
          data: {
            ip: IP,
            round: 2,
            attempt: 5,
            kind: 'refresh',
            gave_up_at: new Date(AT).toISOString(),
            failures: [{ provider: 'http', reason: 'timed out' }],
            settles: [reservation()],
          },
        },
      ]);
  });
  it('of a completion that is given up leaves the result complete until it is stale', () => {
    const tries = [1, 2, 3, 4].map((attempt) => failed(attempt, 2));
    const before = [
      requested(),
      completed({ match_type: 'isp', needs_company_enrichment: true }),
      requested(2, 'completion'),
      ...tries,
    ];
    const state = before.reduce(enrichment.evolve, enrichment.initial);
    const gaveUp = enrichment.decide(fail(5, 2), state);
    const after = gaveUp.ok ? gaveUp.value.reduce(enrichment.evolve, state) : state;
    expect(enrichment.decide(submit(reservation(ANNA, 3)), after)).toEqual({ ok: true, value: [] });
  });
});

describe('the delay between attempts', () => {
  it('doubles from 15 s to at most an hour, give or take a fifth', () => {
    expect([1, 2, 3, 8, 9, 20].map((attempt) => retryDelayMs(attempt, 0.5, 15_000))).toEqual([
      15_000, 30_000, 60_000, 1_920_000, 3_600_000, 3_600_000,
    ]);
    expect(retryDelayMs(1, 0, 15_000)).toBe(12_000);
    expect(retryDelayMs(1, 1, 15_000)).toBe(18_000);
  });
});
