import { describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { enrichmentDecider, retryDelayMs } from '../../domain/lookup/enrichment.ts';
import type { EnrichmentEvent } from '../../domain/lookup/events.ts';
import { savedResultSchema } from '../../domain/lookup/result.ts';
import { given } from '../domain/deciding.ts';
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

const submit = (by = reservation(), at = AT) =>
  ({ type: 'Submit', ip: IP, reservation: by, configured: ['directory'], at }) as const;
const STALE = { fresh_until: new Date(AT - 1).toISOString() };
const fail = (attempt: number, round = 1) =>
  ({
    type: 'Fail',
    round,
    attempt,
    failures: [{ provider: 'http', reason: 'timed out' }],
    answered: [],
    at: AT,
    jitter: 0.5,
    baseMs: 15_000,
  }) as const;
const complete = (attempt: number, round = 1) =>
  ({ type: 'Complete', round, attempt, result: result() }) as const;

describe('submitting an address', () => {
  it('starts the first round when nothing is saved', () => {
    given(enrichmentDecider, []).when(submit()).thenEvents([requested()]);
  });
  it('joins the round of another partner', () => {
    given(enrichmentDecider, [requested()])
      .when(submit(reservation(BERT)))
      .thenEvents([joined(reservation(BERT))]);
  });
  it('changes nothing when the partner waits already, whatever the reservation', () => {
    given(enrichmentDecider, [requested()])
      .when(submit(reservation(ANNA, 2)))
      .thenEvents([]);
  });
  it('changes nothing when a fresh result is saved', () => {
    given(enrichmentDecider, [requested(), completed()])
      .when(submit(reservation(BERT)))
      .thenEvents([]);
  });
  it('requests a refresh of a stale result', () => {
    given(enrichmentDecider, [requested(), completed(STALE)])
      .when(submit(reservation(ANNA, 2)))
      .thenEvents([requested(2, 'refresh', reservation(ANNA, 2))]);
  });
  it('requests the missing part of an incomplete result', () => {
    given(enrichmentDecider, [requested(), completed({ match_type: 'isp', needs_company_enrichment: true })])
      .when(submit(reservation(ANNA, 2)))
      .thenEvents([requested(2, 'completion', reservation(ANNA, 2))]);
  });
  it('changes nothing for a reservation that is settled already, however late it arrives', () => {
    given(enrichmentDecider, [requested(), completed(STALE)])
      .when(submit())
      .thenEvents([]);
  });
  it('works for a reveal, which has no reservation', () => {
    given(enrichmentDecider, [])
      .when({ type: 'Submit', ip: IP, reservation: null, configured: [], at: AT })
      .thenEvents([requested(1, 'first', null)]);
    given(enrichmentDecider, [requested()])
      .when({ type: 'Submit', ip: IP, reservation: null, configured: [], at: AT })
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
  it('is made at once of a result that a clock ahead recorded', () => {
    given(enrichmentDecider, [requested(), completed()])
      .when({ type: 'Snapshot', before: MIDNIGHT - 365 * DAY, at: MIDNIGHT - 364 * DAY })
      .thenEvents([snapshotted()]);
  });
  it("folds to the same state as the events that it replaces, except for the result's times", () => {
    const fold = (events: readonly EnrichmentEvent[]) =>
      events.reduce(enrichmentDecider.evolve, enrichmentDecider.initial);
    for (const events of [
      [requested(), completed()],
      [requested(), completed(), requested(2, 'refresh'), gaveUp()],
    ]) {
      const before = fold(events);
      const decision = enrichmentDecider.decide(snapshot, before);
      const after = fold(decision.ok ? decision.value : []);
      const { enriched_at, fresh_until } = before.saved ?? result();
      const { saved, ...others } = { ...after, snapshotted: false };
      expect({ ...others, saved: { ...saved, enriched_at, fresh_until } }).toEqual(before);
    }
  });
});

describe('an attempt', () => {
  it('that succeeds settles every waiting partner', () => {
    given(enrichmentDecider, [requested(), joined(reservation(BERT))])
      .when(complete(1))
      .thenEvents([completed({}, { settles: [reservation(), reservation(BERT)] })]);
  });
  it('that fails is due again after the base delay', () => {
    given(enrichmentDecider, [requested()])
      .when(fail(1))
      .thenEvents([failed(1)]);
  });
  it('that is late or repeated changes nothing', () => {
    given(enrichmentDecider, [requested(), failed(1)])
      .when(complete(1))
      .thenEvents([]);
    given(enrichmentDecider, [requested(), failed(1)])
      .when(fail(1))
      .thenEvents([]);
    given(enrichmentDecider, [requested(), completed()]).when(fail(1)).thenEvents([]);
    given(enrichmentDecider, [requested(), completed(STALE), requested(2, 'refresh')])
      .when(complete(1, 1))
      .thenEvents([]);
  });
  it('of a first enrichment is repeated until it succeeds', () => {
    const tries = [1, 2, 3, 4, 5, 6, 7].map((attempt) => failed(attempt));
    const decision = enrichmentDecider.decide(
      fail(8),
      [requested(), ...tries].reduce(enrichmentDecider.evolve, enrichmentDecider.initial),
    );
    expect(decision).toMatchObject({
      value: [{ type: 'lookup.EnrichmentAttemptFailed.v1', data: { attempt: 8 } }],
    });
  });
  it('of a refresh is not repeated after the fifth failure', () => {
    const tries = [1, 2, 3, 4].map((attempt) => failed(attempt, 2));
    const state = [requested(), completed(STALE), requested(2, 'refresh'), ...tries];
    given(enrichmentDecider, state)
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
  it('of an abandoned completion leaves the result complete until it is stale', () => {
    const tries = [1, 2, 3, 4].map((attempt) => failed(attempt, 2));
    const before = [
      requested(),
      completed({ match_type: 'isp', needs_company_enrichment: true }),
      requested(2, 'completion'),
      ...tries,
    ];
    const state = before.reduce(enrichmentDecider.evolve, enrichmentDecider.initial);
    const gaveUp = enrichmentDecider.decide(fail(5, 2), state);
    const after = gaveUp.ok ? gaveUp.value.reduce(enrichmentDecider.evolve, state) : state;
    expect(enrichmentDecider.decide(submit(reservation(ANNA, 3)), after)).toEqual({ ok: true, value: [] });
  });
});

describe('a provider that a saved result lacks', () => {
  const configured = ['directory', 'vendor'];
  const asks = (over: object = {}) => ({ ...submit(reservation(ANNA, 3)), configured, ...over });
  const isp = { match_type: 'isp' } as const;
  it('is asked on the next POST when it is configured now and was not asked then', () => {
    given(enrichmentDecider, [requested(), completed(isp)])
      .when(asks())
      .thenEvents([requested(2, 'completion', reservation(ANNA, 3))]);
  });
  it('is not asked when the match is a company, when it was asked, or when it is configured no more', () => {
    given(enrichmentDecider, [requested(), completed()]).when(asks()).thenEvents([]);
    given(enrichmentDecider, [requested(), completed({ ...isp, answered_by: configured })])
      .when(asks())
      .thenEvents([]);
    given(enrichmentDecider, [requested(), completed({ ...isp, answered_by: ['directory', 'gone'] })])
      .when(asks({ configured: ['directory'] }))
      .thenEvents([]);
  });
  it('is any but directory and http in a result of a release before 0.3.0', () => {
    const { answered_by: _, ...data } = result({ ...isp, sources: [] });
    expect(savedResultSchema.parse(data).answered_by).toEqual(['directory', 'http']);
  });

  const gaveUpOn = (asked?: false): EnrichmentEvent => ({
    type: 'lookup.EnrichmentGaveUp.v1',
    data: {
      ip: IP,
      round: 2,
      attempt: 5,
      kind: 'completion',
      gave_up_at: new Date(AT).toISOString(),
      failures: [{ provider: 'vendor', reason: 'timed out', ...(asked === false && { asked }) }],
      settles: [reservation(ANNA, 2)],
    },
  });
  it('counts as asked after a completion in which it failed five times', () => {
    given(enrichmentDecider, [requested(), completed(isp), requested(2, 'completion'), gaveUpOn()])
      .when(asks())
      .thenEvents([]);
  });
  it('that knows nothing of the address is remembered for the later attempts of the round', () => {
    const events = [requested(), { ...failed(1) }, failed(2)].map((event) =>
      event.type === 'lookup.EnrichmentAttemptFailed.v1'
        ? { ...event, data: { ...event.data, answered: ['directory'] } }
        : event,
    ) as EnrichmentEvent[];
    expect(events.reduce(enrichmentDecider.evolve, enrichmentDecider.initial).open?.answered).toEqual([
      'directory',
    ]);
  });
});

describe('the delay between attempts', () => {
  it('doubles from 15 s to at most an hour, with 20 % jitter', () => {
    expect([1, 2, 3, 8, 9, 20].map((attempt) => retryDelayMs(attempt, 0.5, 15_000))).toEqual([
      15_000, 30_000, 60_000, 1_920_000, 3_600_000, 3_600_000,
    ]);
    expect(retryDelayMs(1, 0, 15_000)).toBe(12_000);
    expect(retryDelayMs(1, 1, 15_000)).toBe(18_000);
  });
});

describe('a result that has not been requested for a long time', () => {
  const forget = { type: 'Forget', at: AT } as const;
  const forgotten = {
    type: 'lookup.ResultForgotten.v1',
    data: { ip: IP, forgotten_at: new Date(AT).toISOString() },
  } as const;
  it('is forgotten once', () => {
    given(enrichmentDecider, [requested(), completed()]).when(forget).thenEvents([forgotten]);
  });
  it('stays while a round is in progress, and cannot be forgotten where nothing is saved', () => {
    given(enrichmentDecider, [requested(), completed(STALE), requested(2, 'refresh')])
      .when(forget)
      .thenEvents([]);
    given(enrichmentDecider, [requested()]).when(forget).thenEvents([]);
    given(enrichmentDecider, []).when(forget).thenEvents([]);
  });
  it('ends its stream: later commands go to the next generation', () => {
    const ended = [requested(), completed(), forgotten];
    given(enrichmentDecider, ended).when(submit()).thenRefused('result_forgotten');
    given(enrichmentDecider, ended).when(fail(1, 2)).thenRefused('result_forgotten');
    given(enrichmentDecider, ended).when(complete(1, 2)).thenRefused('result_forgotten');
  });
});

describe('an erasure', () => {
  const erase = { type: 'Erase', at: AT } as const;
  const at = new Date(AT).toISOString();
  const forgotten = { type: 'lookup.ResultForgotten.v1', data: { ip: IP, forgotten_at: at } } as const;
  it('forgets a saved result once', () => {
    given(enrichmentDecider, [requested(), completed()]).when(erase).thenEvents([forgotten]);
    given(enrichmentDecider, [requested(), completed(), forgotten]).when(erase).thenEvents([]);
    given(enrichmentDecider, []).when(erase).thenEvents([]);
  });
  it('ends the open round without a result, and settles its reservations', () => {
    const round = { round: 1, attempt: 0, kind: 'first', failures: [], settles: [reservation()] } as const;
    const ends = { ip: IP, gave_up_at: at, ...round, failures: [], settles: [...round.settles] };
    given(enrichmentDecider, [requested()])
      .when(erase)
      .thenEvents([{ type: 'lookup.EnrichmentGaveUp.v1', data: ends }, forgotten]);
  });
});
