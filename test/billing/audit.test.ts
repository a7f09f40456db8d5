import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Difference } from '../../domain/billing/audit-ledger.ts';
import type { EventStore, NewEvent } from '../../event-store/port.ts';
import {
  createBillingFixture,
  foundIn,
  openBillingFixture,
  PARTNER,
  type Tampering,
} from '../support/billing-fixture.ts';
import { copyDatabase, type TestDatabase } from '../support/database.ts';
import { type Completed, completedReveal, revealAppend, revealStream } from '../support/reveals.ts';
import { verify } from '../support/verifier.ts';

let original: TestDatabase;
beforeAll(async () => {
  original = await createBillingFixture();
});
afterAll(() => original.drop());

const found = (...how: Tampering) => foundIn(original, ...how);

/** An audit may begin between the two. */
const requestAndComplete = async (store: EventStore, reveal: Completed): Promise<void> => {
  const [requested, completed] = revealAppend(reveal) as [NewEvent, NewEvent];
  await store.append(revealStream(reveal.reveal_id), 'no_stream', [requested]);
  await setImmediate();
  await store.append(revealStream(reveal.reveal_id), 0, [completed]);
};

describe('a billing audit', () => {
  it('finds no difference in a correct ledger and lists units and head digest by month', async () => {
    const { report, verified } = await found(async () => {});
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(report).toEqual({
      partner_id: PARTNER,
      months: [
        { month: '2026-01', entries: 2, units: 1, head_digest: digest },
        { month: '2026-02', entries: 3, units: 3, head_digest: digest },
        { month: '2026-03', entries: 2, units: 1, head_digest: digest },
      ],
      units: 5,
      differences: [],
    });
    expect(verified).toEqual({ code: 0, stdout: '2026-01 1\n2026-02 3\n2026-03 1\nOK\n' });
  });

  it('lists the given month alone, and accepts the heads of all months as anchors', async () => {
    const { report } = await found(async () => {});
    const anchor = report.months[0]?.head_digest ?? '';
    const january = await found(async () => {}, { month: '2026-02', digest: anchor });
    expect(january.report).toMatchObject({
      months: [{ month: '2026-02', entries: 3 }],
      units: 3,
      differences: [],
    });
    expect(january.verified.code).toBe(0);
    const none = await found(async () => {}, { month: '2025-07' });
    expect(none.report).toMatchObject({
      months: [{ month: '2025-07', entries: 0, units: 0, head_digest: null }],
      units: 0,
    });
  });

  it('counts the receipts that have expired', async () => {
    const fixture = await openBillingFixture(await copyDatabase(original.url));
    const { notes } = await fixture.audit();
    expect(notes).toEqual([
      expect.stringMatching(
        /^7 entries: 5 held against their receipts, 2 of receipts that are known to have expired, 0 too old/,
      ),
    ]);
    await fixture.close();
  });

  it('is empty and correct for a partner without a reveal', async () => {
    const fixture = await openBillingFixture(await copyDatabase(original.url));
    const partnerId = randomUUID();
    const { report } = await fixture.audit({ partnerId });
    expect(report).toEqual({ partner_id: partnerId, months: [], units: 0, differences: [] });
    expect(await verify(PARTNER, [])).toEqual({ code: 0, stdout: 'OK\n' });
    await fixture.close();
  });

  it('does not report reveals that complete while it runs', async () => {
    const fixture = await openBillingFixture(await copyDatabase(original.url));
    let busy = true;
    const completing = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (busy) await requestAndComplete(fixture.stack.store, completedReveal({ partner_id: PARTNER }));
      }),
    );
    const seen: number[] = [];
    const differences: Difference[] = [];
    while ((seen.at(-1) ?? 0) < 300) {
      const { report } = await fixture.audit();
      seen.push(report.units);
      differences.push(...report.differences);
    }
    busy = false;
    await completing;
    expect(differences).toEqual([]);
    expect(seen.length).toBeGreaterThan(1);
    await fixture.close();
  });
});
