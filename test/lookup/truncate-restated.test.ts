import { afterAll, beforeAll, expect, it } from 'vitest';
import { createIntakeBatcher } from '../../commands/lookup/aggregates.ts';
import { loadEnrichment } from '../../commands/lookup/generations.ts';
import { recordAttempt } from '../../commands/lookup/record-attempt.ts';
import { submitReservation } from '../../commands/lookup/submit-reservation.ts';
import { truncateRestated } from '../../commands/lookup/truncate-restated.ts';
import type { Position } from '../../event-store/port.ts';
import { lookups } from '../../projections/lookup/lookups.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { ANNA, BERT, reservation } from './lookup-events.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([lookups]);
});
afterAll(() => stack.close());

const rows = () =>
  Promise.all([
    stack.rows('select * from read.enrichment_work'),
    stack.rows('select * from read.reservation order by reservation_id'),
  ]);

it('removes restated events once all consumers have passed them, and read models are rebuilt from the rest', async () => {
  const ip = '8.8.7.1';
  const { store } = stack;
  const streams = {
    store,
    intake: createIntakeBatcher(store),
    digest: (of: string) => `digest of ${of}`,
    configured: () => [],
  };
  for (const partner of [ANNA, BERT])
    await submitReservation(streams, ip, reservation(partner), stack.context());
  for (let attempt = 1; attempt <= 24; attempt += 1) {
    const outcome = { failures: [{ provider: 'http', reason: 'timed out' }], answered: ['directory'] };
    await recordAttempt(
      streams,
      { ip, round: 1, attempt, outcome, jitter: 0, retryBaseMs: 1 },
      stack.context(),
    );
  }
  const { stream, state } = await loadEnrichment(streams, ip);
  const { open } = state;
  if (open === null) throw new Error('the round has ended');
  const stored = () => Array.fromAsync(store.readStream(stream));
  const all = await stored();
  for (const passed of [null, all.at(-4)?.position as Position]) {
    await truncateRestated(store, stream, open, async () => passed);
    expect(await stored()).toHaveLength(all.length);
  }
  await stack.caughtUp([lookups]);
  const before = await rows();
  await truncateRestated(store, stream, open, () => store.head());
  expect(await stored()).toEqual(all.slice(-3));
  expect((await loadEnrichment(streams, ip)).state).toEqual(state);
  await stack.pool.query('delete from read.enrichment_work; delete from read.reservation');
  const client = await stack.pool.connect();
  await client.query('set search_path to read');
  await lookups.apply(await stored(), client);
  client.release(true);
  expect(await rows()).toEqual(before);
});
