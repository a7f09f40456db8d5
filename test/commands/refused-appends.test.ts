import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { billReveals } from '../../commands/billing/bill-reveals.ts';
import { createCaptureVisit } from '../../commands/sessions/capture-visit.ts';
import { closeTrackerDay } from '../../commands/usage/close-usage.ts';
import { queueDeliveries } from '../../commands/webhooks/queue-deliveries.ts';
import { billingStream } from '../../domain/billing/events.ts';
import { trackerDayStream } from '../../domain/usage/events.ts';
import { StoreBusy } from '../../event-store/port.ts';
import { createDayKeys, type DayKeys } from '../../platform/crypto/keyring.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { aCompletion } from '../support/completions.ts';
import { eventually } from '../support/eventually.ts';
import { leadingStore } from '../support/other-stores.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let dayKeys: DayKeys;
let cluster: ReturnType<typeof leadingStore>;
beforeAll(async () => {
  stack = await startTestStack();
  dayKeys = createDayKeys({ pool: stack.pool, master: masterKeyFrom(randomBytes(32)), clock: stack.clock });
});
beforeEach(() => {
  cluster = leadingStore(stack.store);
});
afterAll(() => stack.close());

/** Runs the work until it has been refused and has read, then replicates the event that refused it. */
const replicateMeanwhile = async <T>(work: Promise<T>): Promise<T> => {
  const before = cluster.reads();
  await eventually('the work reads again', () => cluster.reads() >= before + 3);
  cluster.replicate();
  return work;
};
const eventsOf = (stream: string) => Array.fromAsync(stack.store.readStream(stream));

describe('an append that is refused because of an event that is not replicated yet', () => {
  const completion = (partner: string, position: bigint) => aCompletion(stack, partner, position);

  it('is retried by billing, which then appends each entry once', async () => {
    const partner = randomUUID();
    const [five, six] = [completion(partner, 5n), completion(partner, 6n)];
    cluster.hold();
    await billReveals(cluster.store, partner, [five]);
    await replicateMeanwhile(billReveals(cluster.store, partner, [five, six]));
    const entries = await eventsOf(billingStream(partner));
    expect(entries.map(({ data }) => (data as { position: string }).position)).toEqual(['5', '6']);
  });

  it('fails billing as StoreBusy meanwhile and is billed once later', async () => {
    const partner = randomUUID();
    const [five, six] = [completion(partner, 5n), completion(partner, 6n)];
    cluster.hold();
    await billReveals(cluster.store, partner, [five]);
    await expect(billReveals(cluster.store, partner, [five, six])).rejects.toThrow(StoreBusy);
    cluster.replicate();
    await billReveals(cluster.store, partner, [five, six]);
    expect(await eventsOf(billingStream(partner))).toHaveLength(2);
  });

  it('starts no second session for a visit that another process has just captured', async () => {
    const visit = {
      tracker_id: randomUUID(),
      partner_id: randomUUID(),
      token: randomUUID(),
      visit_id: randomUUID(),
      ip: '8.8.8.8',
      visitor_country: 'US',
      custom: {},
    };
    const capture = () =>
      createCaptureVisit(cluster.store, dayKeys, async () => ({
        release: () => undefined,
        confirm: () => undefined,
      }))(visit, stack.context());
    cluster.hold();
    expect(await capture()).toBe('session');
    expect(await replicateMeanwhile(capture())).toBe('retry');
  });
});

describe('an append that is refused because of an event that is lost with its leader', () => {
  it('is repeated for the body of a webhook event, so every delivery has a body', async () => {
    const id = `evt_test_${randomUUID()}`;
    const at = new Date(stack.clock.now()).toISOString();
    cluster.refuseOnce(`payload-${id}`, 0);
    await queueDeliveries(cluster.store, dayKeys, [
      {
        envelope: { id, type: 'webhook.test', created_at: at, data: {} } as never,
        partner_id: randomUUID(),
        webhook_ids: [randomUUID()],
        key_day: at.slice(0, 10),
        expires_at: '2026-03-31T12:00:00.000Z',
        source_position: null,
        context: stack.context(),
      },
    ]);
    expect(await eventsOf(`payload-${id}`)).toHaveLength(1);
  });

  it('is repeated for a part of a closed day', async () => {
    const stream = trackerDayStream('2026-02-01');
    cluster.refuseOnce(stream, 0);
    await closeTrackerDay(
      cluster.store,
      '2026-02-01',
      [[randomUUID(), '2026-02-01T10', 1, 0]],
      stack.context(),
    );
    expect(await eventsOf(stream)).toHaveLength(1);
  });
});

describe('a closed day', () => {
  it('is not closed again', async () => {
    const rows = [[randomUUID(), '2026-02-02T10', 1, 0]] as const;
    for (let run = 0; run < 2; run += 1) {
      await closeTrackerDay(stack.store, '2026-02-02', [[...rows[0]]], stack.context());
    }
    expect(await eventsOf(trackerDayStream('2026-02-02'))).toHaveLength(1);
  });
});
