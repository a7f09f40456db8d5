import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createIntakeBatcher, type IntakeBatcher } from '../../commands/lookup/enrichment-streams.ts';
import { intakeStream } from '../../domain/lookup/intake.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const reserve = (batcher: IntakeBatcher, partner: string, ip: string, pendingLimit = 1_000_000) =>
  batcher.submitCommand(
    intakeStream(partner),
    {
      type: 'Reserve',
      reservation_id: randomUUID(),
      partner_id: partner,
      key_id: 'key_a',
      ip,
      kind: 'first',
      dailyAllowance: null,
      pendingLimit,
      finished: null,
      at: stack.clock.now(),
    },
    stack.context(),
    (state) => state.openByIp.get(ip),
  );

const eventsOf = (partner: string) => Array.fromAsync(stack.store.readStream(intakeStream(partner)));
const ips = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `8.8.${(from + n) >> 8}.${(from + n) & 255}`);

describe('the batcher of a partner', () => {
  it('admits exactly the limit out of a hundred concurrent requests', async () => {
    const partner = randomUUID();
    const batcher = createIntakeBatcher(stack.store);
    const results = await Promise.all(ips(100).map((ip) => reserve(batcher, partner, ip, 10)));
    expect(results.filter((result) => result.ok)).toHaveLength(10);
    expect(results.filter((result) => !result.ok && result.refusal === 'pending_limit')).toHaveLength(90);
    expect(await eventsOf(partner)).toHaveLength(10);
  });

  it('admits exactly the limit over two racing processes', async () => {
    const partner = randomUUID();
    const other = createPostgresEventStore({ url: stack.url, now: () => stack.clock.now() });
    const batchers = [createIntakeBatcher(stack.store), createIntakeBatcher(other)] as const;
    const results = await Promise.all(
      ips(100).map((ip, n) => reserve(batchers[n % 2 === 0 ? 0 : 1], partner, ip, 10)),
    );
    expect(results.filter((result) => result.ok)).toHaveLength(10);
    expect(await eventsOf(partner)).toHaveLength(10);
    await other.close();
  });

  it('makes one reservation of many equal requests and returns it to all', async () => {
    const partner = randomUUID();
    const batcher = createIntakeBatcher(stack.store);
    const results = await Promise.all(Array.from({ length: 50 }, () => reserve(batcher, partner, '8.8.8.8')));
    expect(new Set(results.map((result) => result.ok && result.value.value)).size).toBe(1);
    expect(results.filter((result) => result.ok && result.value.changed)).toHaveLength(1);
    expect(await eventsOf(partner)).toHaveLength(1);
  });

  it('records the caller and the time in the events', async () => {
    const partner = randomUUID();
    const batcher = createIntakeBatcher(stack.store);
    await reserve(batcher, partner, '8.8.8.8');
    const [event] = await eventsOf(partner);
    expect(event?.metadata).toMatchObject({
      $correlationId: 'a-request',
      $causationId: 'a-request',
      at: new Date(stack.clock.now()).toISOString(),
    });
  });
});
