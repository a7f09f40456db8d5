import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CommandContext } from '../../commands/handle.ts';
import { type EventStore, StoreUnavailable } from '../../event-store/port.ts';
import { type EnrichRevealsDeps, enrichReveals } from '../../processors/lookup/enrich-reveals.ts';
import { completedReveal, revealAppend, revealStream } from '../support/reveals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const IP = '8.8.8.8';
const digest = (ip: string): string => `digest of ${ip}`;

/** A reveal in the log: requested, and completed if so wanted. */
const aReveal = async (store: EventStore, isComplete = false) => {
  const reveal = completedReveal({ partner_id: randomUUID() });
  const events = revealAppend(reveal).slice(0, isComplete ? 2 : 1);
  await store.append(revealStream(reveal.reveal_id), 'no_stream', events);
  const stored = await Array.fromAsync(store.readStream(revealStream(reveal.reveal_id)));
  return { ...reveal, stored };
};
const aProcessor = (over: Partial<EnrichRevealsDeps> = {}) => {
  const asked: { ip: string; partnerId: string; context: CommandContext }[] = [];
  const awaited: string[] = [];
  const processor = enrichReveals({
    pool: stack.pool,
    clock: stack.clock,
    digest,
    addressOf: async () => IP,
    request: async (ip, partnerId, context) => {
      asked.push({ ip, partnerId, context });
      return true;
    },
    onAwaited: async (ip) => {
      awaited.push(ip);
    },
    ...over,
  });
  return { processor, asked, awaited };
};
const waiting = (revealId: string) =>
  stack.rows('select address_digest, asked from work.awaited_result where reveal_id = $1', [revealId]);

it('requests the enrichment of a pending reveal and lets it wait by the digest of its address', async () => {
  const { reveal_id, partner_id, stored } = await aReveal(stack.store);
  const { processor, asked, awaited } = aProcessor();
  for (const event of stored) await processor.handle(event);
  expect(asked).toMatchObject([{ ip: IP, partnerId: partner_id }]);
  expect(await waiting(reveal_id)).toEqual([{ address_digest: digest(IP), asked: true }]);
  expect(awaited).toEqual([IP]);
});

it('lets a reveal wait once when its event is delivered twice', async () => {
  const { reveal_id, stored } = await aReveal(stack.store);
  const { processor, asked } = aProcessor();
  for (const event of [...stored, ...stored]) await processor.handle(event);
  expect(await waiting(reveal_id)).toHaveLength(1);
  // The enrichment's own command joins a round once.
  expect(asked).toHaveLength(2);
});

it('records the reveal on redelivery when it was killed after the request', async () => {
  const { reveal_id, stored } = await aReveal(stack.store);
  let dies = true;
  const { processor } = aProcessor({
    request: async () => {
      if (dies) throw new StoreUnavailable('away');
      return true;
    },
  });
  const [event] = stored;
  if (!event) throw new Error('nothing is stored');
  await expect(processor.handle(event)).rejects.toBeInstanceOf(StoreUnavailable);
  expect(await waiting(reveal_id)).toEqual([]);
  dies = false;
  await processor.handle(event);
  expect(await waiting(reveal_id)).toEqual([{ address_digest: digest(IP), asked: true }]);
});

it('leaves the request to the sweep when the intake is full', async () => {
  const { reveal_id, stored } = await aReveal(stack.store);
  const { processor } = aProcessor({ request: async () => false });
  for (const event of stored) await processor.handle(event);
  expect(await waiting(reveal_id)).toEqual([{ address_digest: digest(IP), asked: false }]);
});

it('requests nothing for a session that has expired or whose address is not public', async () => {
  const { reveal_id, stored } = await aReveal(stack.store);
  const { processor, asked } = aProcessor({ addressOf: async () => null });
  for (const event of stored) await processor.handle(event);
  expect([asked, await waiting(reveal_id)]).toEqual([[], []]);
});

it('requests nothing for a reveal that was completed with its request', async () => {
  const { reveal_id, stored } = await aReveal(stack.store, true);
  const { processor, asked } = aProcessor();
  await processor.handleAll?.(stored);
  expect([asked, await waiting(reveal_id)]).toEqual([[], []]);
});

it('lets a completed reveal wait no longer, also when its request is delivered again before', async () => {
  const { reveal_id, stored } = await aReveal(stack.store, true);
  const { processor } = aProcessor();
  const [requested, completed] = stored;
  if (!requested || !completed) throw new Error('nothing is stored');
  for (const event of [requested, requested, completed, completed]) await processor.handle(event);
  expect(await waiting(reveal_id)).toEqual([]);
});
