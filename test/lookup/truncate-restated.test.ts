import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createIntakeBatcher,
  handleEnrichment,
  loadEnrichment,
} from '../../commands/lookup/enrichment-streams.ts';
import { recordAttempt, truncateRestated } from '../../commands/lookup/record-attempt.ts';
import { snapshotEnrichment } from '../../commands/lookup/snapshot-streams.ts';
import { submitReservation } from '../../commands/lookup/submit-lookup.ts';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import type { EnrichmentCommand } from '../../domain/lookup/enrichment.ts';
import type { Position } from '../../event-store/port.ts';
import { lookups } from '../../projections/lookup/lookups.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { ANNA, BERT, reservation, result } from './lookup-events.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([lookups]);
});
afterAll(() => stack.close());

const rowsOf = (ip: string) =>
  Promise.all([
    stack.rows('select * from read.enrichment_work where ip = $1', [ip]),
    stack.rows('select * from read.reservation where ip = $1 order by reservation_id', [ip]),
  ]);

it('keeps the stream of an address short whose refreshes fail and are repeated at once', async () => {
  const { store } = stack;
  const ip = '8.8.7.2';
  const streams = { store, digest: (of: string) => `digest of ${of}` };
  const lengths: number[] = [];
  const run = (command: EnrichmentCommand) => handleEnrichment(streams, ip, command, stack.context());
  const at = stack.clock.now();
  const submit = { type: 'Submit', ip, reservation: null, configured: ['directory'], at } as const;
  const old = { ip, enriched_at: isoTime(at - 40 * DAY), fresh_until: isoTime(at - 10 * DAY) };
  await run(submit);
  await run({ type: 'Complete', round: 1, attempt: 1, result: result(old) });
  for (let round = 2; round <= 21; round += 1) {
    await run(submit);
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const { stream, state } = await loadEnrichment(streams, ip);
      if (state.open) await truncateRestated(store, stream, state.open, () => store.head());
      await run({ type: 'Fail', round, attempt, failures: [], answered: [], at, jitter: 0, baseMs: 1 });
    }
    const { stream, state } = await loadEnrichment(streams, ip);
    expect(state).toMatchObject({ round, open: null, saved: { fresh_until: expect.any(String) } });
    lengths.push((await Array.fromAsync(store.readStream(stream))).length);
  }
  expect(lengths.at(-1)).toBe(lengths[1]);
  await stack.caughtUp([lookups]);
  await run(submit);
  await stack.caughtUp([lookups]);
  const [work] = await stack.rows('select round, kind, attempts from read.enrichment_work where ip = $1', [
    ip,
  ]);
  expect(work).toEqual({ round: 22, kind: 'refresh', attempts: 0 });
  const saved = await stack.rows('select match_type, snapshotted from read.saved_lookup where ip = $1', [ip]);
  expect(saved).toEqual([{ match_type: 'company', snapshotted: true }]);
});

it('keeps the stream of an address short whose completions are held back and repeated at once', async () => {
  const { store } = stack;
  const ip = '8.8.7.3';
  const streams = { store, digest: (of: string) => `digest of ${of}` };
  const run = (command: EnrichmentCommand) => handleEnrichment(streams, ip, command, stack.context());
  const at = stack.clock.now();
  const configured = ['directory', 'vendor'];
  const submit = { type: 'Submit', ip, reservation: null, configured, at } as const;
  const failures = [{ provider: 'vendor', reason: 'not asked: its budget of today is used up' }] as const;
  await run(submit);
  const saved = result({
    ip,
    match_type: 'isp',
    company: null,
    answered_by: ['directory'],
    needs_company_enrichment: true,
    enriched_at: isoTime(at),
    fresh_until: isoTime(at + 7 * DAY),
  });
  await run({ type: 'Complete', round: 1, attempt: 1, result: saved });
  const lengths: number[] = [];
  for (let round = 2; round <= 6; round += 1) {
    await run(submit);
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const { stream, state } = await loadEnrichment(streams, ip);
      if (state.open) await truncateRestated(store, stream, state.open, () => store.head());
      await run({ type: 'Fail', round, attempt, failures, answered: [], at, jitter: 0, baseMs: 1 });
    }
    lengths.push(
      (await Array.fromAsync(store.readStream((await loadEnrichment(streams, ip)).stream))).length,
    );
  }
  expect(lengths.at(-1)).toBe(lengths[1]);
  const { state } = await loadEnrichment(streams, ip);
  expect(state).toMatchObject({ open: null, saved: { enriched_at: isoTime(at), match_type: 'isp' } });
  await stack.caughtUp([lookups]);
  expect(await stack.rows('select snapshotted from read.saved_lookup where ip = $1', [ip])).toEqual([
    { snapshotted: false },
  ]);
  const cut = { before: at + DAY, passed: (await store.head()) as Position };
  expect(await snapshotEnrichment(streams, ip, cut, { ...stack.context(), at: at + DAY })).toBe(true);
  await stack.caughtUp([lookups]);
  const [row] = await stack.rows('select snapshotted, enriched_at from read.saved_lookup where ip = $1', [
    ip,
  ]);
  expect(row).toEqual({
    snapshotted: true,
    enriched_at: new Date(`${isoTime(at).slice(0, 10)}T00:00:00.000Z`),
  });
});

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
      { ip, roundNumber: 1, attempt, outcome, jitter: 0, retryBaseMs: 1 },
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
  const before = await rowsOf(ip);
  await truncateRestated(store, stream, open, () => store.head());
  expect(await stored()).toEqual(all.slice(-3));
  expect((await loadEnrichment(streams, ip)).state).toEqual(state);
  await stack.pool.query('delete from read.enrichment_work; delete from read.reservation');
  const client = await stack.pool.connect();
  await client.query('set search_path to read');
  await lookups.apply(await stored(), client);
  client.release(true);
  expect(await rowsOf(ip)).toEqual(before);
});
