import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createChainCheck } from '../../domain/billing/audit-ledger.ts';
import { billingStream } from '../../domain/billing/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import { BILLING, billCompletedReveals } from '../../processors/billing/bill-completed-reveals.ts';
import { eventually } from '../support/eventually.ts';
import { startProcessor } from '../support/leading.ts';
import { complete, completedReveal, revealAppend, revealStream } from '../support/reveals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** Runs the billing processor. A `name` other than its own makes a second leader beside the first. */
const started = (name = BILLING.name, store: EventStore = stack.store) => {
  let passed = -1n;
  const stopped: string[] = [];
  const processor = startProcessor({ ...billCompletedReveals(store, stack.clock), name }, stack, {
    onPassed: (_name, position) => {
      passed = position;
    },
    onStopped: (stoppedName) => stopped.push(stoppedName),
  });
  return {
    stopped,
    stop: processor.stop,
    caughtUp: async () => {
      const head = (await stack.store.head()) ?? 0n;
      await until('all completions are handled', () => passed >= head);
    },
  };
};

const ledgerOf = async (partner: string) => {
  const stored = await Array.fromAsync(stack.store.readStream(billingStream(partner)));
  const { add, chain } = createChainCheck(partner);
  stored.forEach(add);
  expect(chain.differences).toEqual([]);
  return chain.entries;
};
const revealsOf = async (partner: string) => (await ledgerOf(partner)).map(({ reveal_id }) => reveal_id);

describe('billing completed reveals', () => {
  it('gives each of 500 completions of several partners one entry, in log order', async () => {
    const partners = Array.from({ length: 5 }, () => randomUUID());
    const billing = [started(), started('second leader')];
    const completed = await Promise.all(
      Array.from({ length: 500 }, async (_, nth) => {
        const partner_id = partners[nth % partners.length] as string;
        const reveal = completedReveal({ partner_id }, nth % 3 > 0);
        return { ...reveal, position: await complete(stack.store, reveal) };
      }),
    );
    for (const each of billing) await each.caughtUp();
    for (const partner of partners) {
      const own = completed
        .filter(({ partner_id }) => partner_id === partner)
        .sort((a, b) => (a.position < b.position ? -1 : 1));
      expect(own).toHaveLength(100);
      expect(
        (await ledgerOf(partner)).map(({ reveal_id, units, position }) => ({ reveal_id, units, position })),
      ).toEqual(
        own.map(({ reveal_id, billable, position }) => ({ reveal_id, units: billable ? 1 : 0, position })),
      );
    }
    for (const each of billing) await each.stop();
  });

  it('adds nothing when every completion is delivered again after the ledger has grown', async () => {
    const partner_id = randomUUID();
    const reveals = Array.from({ length: 7 }, () => completedReveal({ partner_id }));
    for (const reveal of reveals) await complete(stack.store, reveal);
    const first = started();
    await first.caughtUp();
    await first.stop();
    const before = await revealsOf(partner_id);
    await stack.pool.query('update work.processor set position = null where name = $1', [BILLING.name]);
    const late = completedReveal({ partner_id });
    await complete(stack.store, late);
    const second = started();
    await second.caughtUp();
    await second.stop();
    expect(await revealsOf(partner_id)).toEqual([...before, late.reveal_id]);
  });

  it('bills a completion that expired while the processor was stopped', async () => {
    const partner_id = randomUUID();
    const reveal = completedReveal({ partner_id, expires_at: '2026-03-01T12:00:01.000Z' });
    await complete(stack.store, reveal);
    stack.clock.advance(86_400_000);
    expect(await Array.fromAsync(stack.store.readStream(revealStream(reveal.reveal_id)))).toEqual([]);
    const billing = started();
    await billing.caughtUp();
    await billing.stop();
    expect(await revealsOf(partner_id)).toEqual([reveal.reveal_id]);
  });

  it('stops at a completion that it cannot read and bills nothing of that partner beyond it', async () => {
    const partner_id = randomUUID();
    const [good, bad, later] = [1, 2, 3].map(() => completedReveal({ partner_id }));
    if (!good || !bad || !later) throw new Error('three of them');
    await complete(stack.store, good);
    const [requested, completed] = revealAppend(bad);
    if (!requested || !completed) throw new Error('two events');
    const broken = { ...completed, data: { ...completed.data, tracker_id: 'none' } };
    await stack.store.append(revealStream(bad.reveal_id), 'no_stream', [requested, broken]);
    await complete(stack.store, later);
    const billing = started();
    await until('it stops', () => billing.stopped.length > 0);
    expect(await revealsOf(partner_id)).toEqual([good.reveal_id]);
    // Written after the call that `stopped` counts.
    const [row] = await eventually(
      'the cause is stored',
      () => stack.rows('select stopped_by from work.processor where name = $1', [BILLING.name]),
      ([stored]) => stored?.stopped_by !== null,
    );
    expect(row?.stopped_by).toContain(`reveals.RevealCompleted.v1 at revision 1 of reveal-${bad.reveal_id}`);
    await billing.stop();
  });
});
