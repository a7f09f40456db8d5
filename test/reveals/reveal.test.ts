import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { RevealEvent, RevealResult } from '../../domain/reveals/events.ts';
import { EMPTY_RESULT, isNonempty, type RevealCommand, revealDecider } from '../../domain/reveals/reveal.ts';
import { given } from '../domain/deciding.ts';
import { revealFactsOf } from '../support/reveals.ts';

const AT = Date.parse('2026-03-14T12:00:00.000Z');
const { created_at, ...ids } = revealFactsOf(randomUUID(), '2026-03-14T12:00:00.000Z');
const found: RevealResult = { ...EMPTY_RESULT, network: { ...EMPTY_RESULT.network, is_isp: false } };
const requested: RevealEvent = {
  type: 'reveals.RevealRequested.v1',
  data: { ...ids, created_at },
};
const completed = (result: RevealResult, completed_at: string): RevealEvent => ({
  type: 'reveals.RevealCompleted.v1',
  data: { ...requested.data, completed_at, billable: result === found, result },
});
const request = (over: Partial<Extract<RevealCommand, { type: 'Request' }>> = {}): RevealCommand => ({
  type: 'Request',
  reveal: ids,
  result: null,
  at: AT,
  ...over,
});
const LATER = AT + 60_000;
const later = new Date(LATER).toISOString();

describe('a reveal', () => {
  it('without a result is only requested', () => {
    given(revealDecider, []).when(request()).thenEvents([requested]);
  });
  it('with a result is requested and completed in the same append', () => {
    given(revealDecider, [])
      .when(request({ result: found }))
      .thenEvents([requested, completed(found, '2026-03-14T12:00:00.000Z')]);
  });
  it('that is repeated keeps its time, and completes when it now can', () => {
    given(revealDecider, [requested])
      .when(request({ at: LATER }))
      .thenEvents([]);
    given(revealDecider, [requested])
      .when(request({ result: found, at: LATER }))
      .thenEvents([completed(found, later)]);
  });
  it('that is complete does not change', () => {
    const done = [requested, completed(EMPTY_RESULT, later)];
    given(revealDecider, done)
      .when(request({ result: found }))
      .thenEvents([]);
    given(revealDecider, done).when({ type: 'Complete', result: found, at: LATER }).thenEvents([]);
  });
  it('belongs to one session', () => {
    given(revealDecider, [requested])
      .when(request({ reveal: { ...ids, session_id: ids.tracker_id } }))
      .thenRefused('idempotency_conflict');
  });
  it('is completed only after its request', () => {
    given(revealDecider, []).when({ type: 'Complete', result: found, at: AT }).thenEvents([]);
    given(revealDecider, [requested])
      .when({ type: 'Complete', result: EMPTY_RESULT, at: LATER })
      .thenEvents([completed(EMPTY_RESULT, later)]);
  });
});

it('costs a unit for any known field, including false and zero', () => {
  expect(isNonempty(EMPTY_RESULT)).toBe(false);
  expect(isNonempty(found)).toBe(true);
  expect(isNonempty({ ...EMPTY_RESULT, network: { ...EMPTY_RESULT.network, is_isp: true } })).toBe(true);
});
