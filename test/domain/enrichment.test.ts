import { describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { enrichment } from '../../domain/lookup/enrichment.ts';
import type { EnrichmentEvent } from '../../domain/lookup/events.ts';
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

const MIDNIGHT = Date.parse('2026-03-02T00:00:00.000Z');
const snapshotted = (gave_up_at: string | null = null, round = 1): EnrichmentEvent => ({
  type: 'lookup.EnrichmentSnapshotted.v1',
  data: {
    round,
    result: result({ enriched_at: '2026-03-01T00:00:00.000Z', fresh_until: '2026-03-31T00:00:00.000Z' }),
    settles: [reservation()],
    gave_up_at,
  },
});
const gaveUp = (round = 2): EnrichmentEvent => ({
  type: 'lookup.EnrichmentGaveUp.v1',
  data: {
    ip: IP,
    round,
    attempt: 5,
    kind: 'refresh',
    gave_up_at: new Date(AT).toISOString(),
    failures: [],
    settles: [reservation()],
  },
});

describe('a snapshot', () => {
  const snapshot = { type: 'Snapshot', before: MIDNIGHT, at: MIDNIGHT } as const;
  it('stands for all that ended, with the times of the result cut to their UTC days', () => {
    given(enrichment, [requested(), failed(1), completed({}, { attempt: 2 })])
      .when(snapshot)
      .thenEvents([snapshotted()]);
  });
  it('keeps when the last round was given up', () => {
    given(enrichment, [requested(), completed(), requested(2, 'refresh'), gaveUp()])
      .when(snapshot)
      .thenEvents([snapshotted(new Date(AT).toISOString(), 2)]);
  });
  it('is not made of a result of the day, of work under way, or where nothing is saved', () => {
    given(enrichment, [requested(), completed({ enriched_at: '2026-03-02T00:00:00.000Z' })])
      .when(snapshot)
      .thenEvents([]);
    given(enrichment, [requested(), completed(), requested(2, 'refresh')])
      .when(snapshot)
      .thenEvents([]);
    given(enrichment, [requested()]).when(snapshot).thenEvents([]);
  });
  it('is made at once of a result that was found by a clock that was ahead', () => {
    given(enrichment, [requested(), completed()])
      .when({ type: 'Snapshot', before: MIDNIGHT - 365 * DAY, at: MIDNIGHT - 364 * DAY })
      .thenEvents([snapshotted()]);
  });
  it('leads to the same state as the events that it stands for, but for the times of the result', () => {
    const fold = (events: readonly EnrichmentEvent[]) => events.reduce(enrichment.evolve, enrichment.initial);
    for (const events of [
      [requested(), completed()],
      [requested(), completed(), requested(2, 'refresh'), gaveUp()],
    ]) {
      const before = fold(events);
      const decision = enrichment.decide(snapshot, before);
      const after = fold(decision.ok ? decision.value : []);
      const { enriched_at, fresh_until } = before.saved ?? result();
      const { saved, ...others } = { ...after, snapshotted: false };
      expect({ ...others, saved: { ...saved, enriched_at, fresh_until } }).toEqual(before);
    }
  });
  it('is followed by further rounds, of which another snapshot can be made', () => {
    given(enrichment, [snapshotted(), requested(2, 'refresh'), completed({}, { round: 2 })])
      .when(snapshot)
      .thenEvents([snapshotted(null, 2)]);
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

describe('a result that nobody has asked for in a long time', () => {
  const forget = { type: 'Forget', at: AT } as const;
  const forgotten = {
    type: 'lookup.ResultForgotten.v1',
    data: { ip: IP, forgotten_at: new Date(AT).toISOString() },
  } as const;
  it('is forgotten once', () => {
    given(enrichment, [requested(), completed()]).when(forget).thenEvents([forgotten]);
  });
  it('stays while work on it is under way, and where nothing is saved there is nothing to forget', () => {
    given(enrichment, [requested(), completed(STALE), requested(2, 'refresh')])
      .when(forget)
      .thenEvents([]);
    given(enrichment, [requested()]).when(forget).thenEvents([]);
    given(enrichment, []).when(forget).thenEvents([]);
  });
  it('has ended its stream: whatever is asked of it belongs into the next generation', () => {
    const ended = [requested(), completed(), forgotten];
    given(enrichment, ended).when(submit()).thenRefused('result_forgotten');
    given(enrichment, ended).when(fail(1, 2)).thenRefused('result_forgotten');
    given(enrichment, ended).when(complete(1, 2)).thenRefused('result_forgotten');
  });
});
