import { afterAll, beforeAll, expect, it } from 'vitest';
import { handleEnrichment } from '../../commands/lookup/enrichment-streams.ts';
import { savedForReveal } from '../../commands/lookup/reveal-lookups.ts';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import type { EnrichmentCommand } from '../../domain/lookup/enrichment.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { ANNA, AT, BERT, IP, reservation, result } from './lookup-events.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const digest = (ip: string): string => `of-${ip}`;
const given = async (...commands: readonly EnrichmentCommand[]): Promise<void> => {
  for (const command of commands) {
    await handleEnrichment({ store: stack.store, digest }, IP, command, stack.context());
  }
};
const seenBy = async (partner: string): Promise<unknown> => {
  const saved = await savedForReveal({ store: stack.store, digest, configured: () => [] }, IP, partner, AT);
  return saved && [saved.refresh_status, saved.refresh_error];
};
const attempt = (n: number, round: number): EnrichmentCommand => ({
  type: 'Fail',
  round,
  attempt: n,
  failures: [],
  answered: [],
  at: AT,
  jitter: 0.5,
  baseMs: 15_000,
});

it('reports a refresh only to the partner that requested it: in progress, given up, or done', async () => {
  expect(await seenBy(ANNA)).toBeNull();
  await given({ type: 'Submit', ip: IP, reservation: null, configured: [], at: AT - 9 * DAY });
  expect(await seenBy(ANNA)).toBeNull();
  const old = result({ fresh_until: isoTime(AT - DAY) });
  await given({ type: 'Complete', round: 1, attempt: 1, result: old });
  expect(await seenBy(ANNA)).toEqual(['not_requested', null]);

  await given({ type: 'Submit', ip: IP, reservation: reservation(ANNA), configured: [], at: AT });
  expect(await seenBy(ANNA)).toEqual(['pending', null]);
  expect(await seenBy(BERT)).toEqual(['not_requested', null]);

  await given(...[1, 2, 3, 4, 5].map((n) => attempt(n, 2)));
  expect(await seenBy(ANNA)).toEqual(['deferred', 'lookup_failed']);
  expect(await seenBy(BERT)).toEqual(['not_requested', null]);

  await given({ type: 'Submit', ip: IP, reservation: reservation(BERT), configured: [], at: AT });
  await given({ type: 'Complete', round: 3, attempt: 1, result: result() });
  expect(await seenBy(ANNA)).toEqual(['not_needed', null]);
});
