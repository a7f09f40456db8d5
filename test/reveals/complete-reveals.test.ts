import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { enrichmentStream } from '../../domain/lookup/events.ts';
import { endpointsStream } from '../../domain/webhooks/endpoints.ts';
import { type RecordedEvent, StoreUnavailable } from '../../event-store/port.ts';
import {
  type CompleteRevealsDeps,
  completeReveals,
  completeRevealsOf,
} from '../../processors/reveals/complete-reveals.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
import { endpoints } from '../../projections/webhooks/endpoints/projection.ts';
import { result } from '../lookup/lookup-events.ts';
import { anEndpoint, created } from '../support/deliveries.ts';
import { completedReveal, revealAppend, revealStream } from '../support/reveals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([reveals, endpoints]);
});
afterEach(() => stack.pool.query('delete from work.awaited_result'));
afterAll(() => stack.close());

const lastOf = async (stream: string): Promise<RecordedEvent> => {
  const stored = (await Array.fromAsync(stack.store.readStream(stream))).at(-1);
  if (!stored) throw new Error(`${stream} is empty`);
  return stored;
};
/** A pending reveal that waits for the address with this digest. */
const aPendingReveal = async (partner_id: string, digest: string): Promise<string> => {
  const at = stack.clock.now();
  const reveal = completedReveal({ partner_id, completed_at: new Date(at).toISOString() });
  const [requested] = revealAppend(reveal);
  if (requested) await stack.store.append(revealStream(reveal.reveal_id), 'no_stream', [requested]);
  await stack.rows(
    `insert into work.awaited_result (reveal_id, session_id, partner_id, address_digest, asked, expires_at)
     values ($1, $2, $3, $4, true, $5)`,
    [reveal.reveal_id, reveal.session_id, partner_id, digest, new Date(reveal.expires_at)],
  );
  // So that reveals have an order by time.
  stack.clock.advance(1_000);
  return reveal.reveal_id;
};
/** A partner whose endpoint subscribes to completed reveals. Returns the endpoint's event. */
const subscribe = async (partnerId: string): Promise<RecordedEvent> => {
  const { type, data } = created(anEndpoint(partnerId), stack.clock.now()) as { type: string; data: object };
  const metadata = { $correlationId: 'c', $causationId: 'c', at: '2026-03-01T12:00:00.000Z' };
  const event = { id: randomUUID(), type, data: { ...data, events: ['reveal.completed'] }, metadata };
  await stack.store.append(endpointsStream(partnerId), 'any', [event]);
  await stack.caughtUp([reveals, endpoints]);
  return lastOf(endpointsStream(partnerId));
};
/** The end of an enrichment as the log holds it. */
const enriched = async (digest: string): Promise<RecordedEvent> => {
  const metadata = { $correlationId: 'c', $causationId: 'c', at: '2026-03-01T12:00:00.000Z' };
  const data = { ip: '8.8.8.8', round: 1, attempt: 1, result: result(), settles: [] };
  const event = { id: randomUUID(), type: 'lookup.EnrichmentCompleted.v1', data, metadata };
  await stack.store.append(enrichmentStream(digest, 0), 'any', [event]);
  return lastOf(enrichmentStream(digest, 0));
};
/** A processor whose completions append nothing unless `completes` says so; `full`: partners without room in their queue. */
const aProcessor = (over: Partial<CompleteRevealsDeps> = {}) => {
  const full = new Set<string>();
  const completed: string[] = [];
  const deps: CompleteRevealsDeps = {
    pool: stack.pool,
    clock: stack.clock,
    applied: async () => true,
    complete: async (revealId) => {
      const [row] = await stack.rows('select partner_id from work.awaited_result where reveal_id = $1', [
        revealId,
      ]);
      completed.push(revealId);
      return !full.has(String(row?.partner_id));
    },
    ...over,
  };
  return { deps, processor: completeReveals(deps), completed, full };
};
const readyOnes = async (): Promise<unknown[]> =>
  (await stack.rows('select reveal_id from work.awaited_result where ready')).map(
    ({ reveal_id }) => reveal_id,
  );

it('completes the reveals that wait for an address and have a subscriber, and keeps the others ready', async () => {
  const [subscribed, unsubscribed] = [randomUUID(), randomUUID()];
  const digest = randomUUID();
  const [mine, others, elsewhere] = [
    await aPendingReveal(subscribed, digest),
    await aPendingReveal(unsubscribed, digest),
    await aPendingReveal(subscribed, randomUUID()),
  ];
  await subscribe(subscribed);
  const { processor, completed } = aProcessor();
  await processor.handle(await enriched(digest));
  expect(completed).toEqual([mine]);
  expect(await readyOnes()).toEqual([others]);
  expect(completed).not.toContain(elsewhere);
});

it('completes a reveal once when the end of its enrichment is delivered twice', async () => {
  const partner = randomUUID();
  const digest = randomUUID();
  const id = await aPendingReveal(partner, digest);
  await subscribe(partner);
  const { processor, completed } = aProcessor({
    complete: async (revealId) => {
      completed.push(revealId);
      const [, event] = revealAppend(
        completedReveal({
          partner_id: partner,
          reveal_id: revealId,
          completed_at: '2026-03-01T13:00:00.000Z',
        }),
      );
      if (event) await stack.store.append(revealStream(revealId), 0, [event]);
      await stack.caughtUp([reveals]);
      return true;
    },
  });
  const event = await enriched(digest);
  await processor.handle(event);
  await processor.handle(event);
  expect(completed).toEqual([id]);
});

it('completes a reveal on redelivery when it was killed between its mark and its completion', async () => {
  const partner = randomUUID();
  const digest = randomUUID();
  const id = await aPendingReveal(partner, digest);
  await subscribe(partner);
  const event = await enriched(digest);
  const dying = aProcessor({ complete: () => Promise.reject(new StoreUnavailable('away')) });
  await expect(dying.processor.handle(event)).rejects.toBeInstanceOf(StoreUnavailable);
  expect(await readyOnes()).toEqual([id]);
  const { processor, completed } = aProcessor();
  await processor.handle(event);
  expect(completed).toEqual([id]);
  expect(await readyOnes()).toEqual([]);
});

it('completes nothing while the read models are behind, and fails so that the event comes again', async () => {
  const partner = randomUUID();
  const digest = randomUUID();
  await aPendingReveal(partner, digest);
  const endpoint = await subscribe(partner);
  const { processor, completed } = aProcessor({ applied: async () => false });
  for (const event of [await enriched(digest), endpoint]) {
    await expect(processor.handle(event)).rejects.toBeInstanceOf(StoreUnavailable);
  }
  expect(completed).toEqual([]);
  expect(await readyOnes()).toEqual([]);
});

it("completes a partner's ready reveals, oldest first, when its endpoint subscribes", async () => {
  const [partner, other] = [randomUUID(), randomUUID()];
  const digest = randomUUID();
  const ids = [await aPendingReveal(partner, digest), await aPendingReveal(partner, digest)];
  await aPendingReveal(other, digest);
  const { deps, processor, completed } = aProcessor();
  await completeRevealsOf(deps, digest);
  expect(completed).toEqual([]);
  await processor.handle(await subscribe(partner));
  expect(completed).toEqual(ids);
});
