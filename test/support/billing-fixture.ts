import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { readLedger } from '../../commands/billing/read-for-audit.ts';
import { billingStream } from '../../domain/billing/events.ts';
import { revealExpiryEvents } from '../../domain/reveals/events.ts';
import type { Position } from '../../event-store/port.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { createSlonik } from '../../platform/postgres/slonik.ts';
import { type AuditOptions, auditBilling } from '../../processors/billing/audit.ts';
import { BILLING, billCompletedReveals } from '../../processors/billing/bill-completed-reveals.ts';
import { recordExpiry } from '../../processors/expiry.ts';
import { revealUnits } from '../../projections/billing/reveal-units.ts';
import { createProgress } from '../../projections/progress.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
import { copyDatabase, type TestDatabase, testDatabase } from './database.ts';
import { startProcessor } from './leading.ts';
import { type Completed, complete, completedReveal, revealStream } from './reveals.ts';
import { startTestStack, type TestStack } from './test-stack.ts';
import { verify } from './verifier.ts';

export const PARTNER = '33333333-3333-4333-8333-333333333333';
export const LEDGER = billingStream(PARTNER);
const master = masterKeyFrom(Buffer.alloc(32, 7));

/** Completed in this order; the first two have expired since (the stack's clock says noon of March 1st). */
const REVEALS = [
  { at: '2026-01-10T10:00:00.000Z', key_id: 'key_a', hasData: true },
  { at: '2026-01-20T10:00:00.000Z', key_id: 'key_a', hasData: false },
  { at: '2026-02-10T10:00:00.000Z', key_id: 'key_b', hasData: true },
  { at: '2026-02-10T10:30:00.000Z', key_id: null, hasData: true },
  { at: '2026-02-28T23:59:59.999Z', key_id: 'key_a', hasData: true },
  { at: '2026-03-01T00:00:00.000Z', key_id: 'key_a', hasData: false },
  { at: '2026-03-01T11:00:00.000Z', key_id: 'key_b', hasData: true },
].map(({ at, key_id, hasData }) =>
  completedReveal(
    { partner_id: PARTNER, completed_at: at, key_id, user_id: key_id === null ? 'user_c' : null },
    hasData,
  ),
);
export const reveal = (number: number) => {
  const found = REVEALS[number];
  if (!found) throw new Error(`no reveal ${number}`);
  return found;
};

/** A database with these reveals, billed and projected, which each test copies and none changes. */
export const createBillingFixture = async (): Promise<TestDatabase> => {
  const original = await testDatabase();
  const fixture = await openBillingFixture({ ...original, drop: async () => {} });
  for (const each of REVEALS) {
    await complete(fixture.stack.store, each);
    await complete(
      fixture.stack.store,
      completedReveal({ partner_id: randomUUID(), key_id: 'key_of_others' }),
    );
  }
  await fixture.caughtUp();
  await expireReceipts(fixture.stack, [reveal(0), reveal(1)]);
  expect((await fixture.audit()).report.differences).toEqual([]);
  await fixture.close();
  return original;
};

/** Deletes receipts and records their ids, as a sweep does. */
const expireReceipts = async (
  { store, context }: TestStack,
  expired: readonly Completed[],
): Promise<void> => {
  for (const { reveal_id } of expired) await store.expire(revealStream(reveal_id), 1);
  const pairs = expired.map(({ reveal_id, expires_at }): [string, string] => [reveal_id, expires_at]);
  const event = { type: 'reveals.RevealsExpired.v1', data: { partner_id: PARTNER, reveals: pairs } };
  await recordExpiry(store, PARTNER, revealExpiryEvents, event, context());
};

/** A database with billing, projections and audit. */
export const openBillingFixture = async (database: TestDatabase) => {
  const stack = await startTestStack(database);
  const { url, store, progress, clock, pool } = stack;
  const db = await createSlonik(url);
  const processed = createProgress({ url, pool, table: 'work.processor' });
  const projections = [revealUnits, reveals];
  const projecting = stack.project(projections);
  const billing = startProcessor(billCompletedReveals(store, clock), stack, {
    onPassed: (name, position) => processed.advance({ [name]: position }),
  });
  return {
    stack,
    caughtUp: async () => {
      await processed.reached([BILLING.name], await store.head(), 10_000);
      await stack.caughtUp(projections);
    },
    audit: (options: Partial<AuditOptions> = {}) =>
      auditBilling(
        { store, db, progress, processed, clock, pool, master },
        { partnerId: PARTNER, patienceMs: 10_000, ...options },
      ),
    entries: async () =>
      (await readLedger(store, PARTNER, (await store.head()) as Position)).map(({ revision, data }) => ({
        number: revision,
        ...data,
      })),
    close: async () => {
      await billing.stop();
      await projecting.stop();
      await processed.close();
      await db.end();
      await stack.close();
    },
  };
};

/**
 * The results of the audit and of the verifier on a manipulated copy: `differences` has each one with its entry's
 * number, or with that of the receipt that it names.
 */
export const foundIn = async (
  original: TestDatabase,
  tamper: (stack: TestStack) => Promise<unknown>,
  options: Partial<AuditOptions> = {},
) => {
  const copy = await copyDatabase(original.url);
  const stack = await startTestStack({ ...copy, drop: async () => {} });
  await tamper(stack);
  await stack.close();
  const fixture = await openBillingFixture(copy);
  try {
    const { report } = await fixture.audit(options);
    const differences = report.differences.map(({ kind, stream, revision }) =>
      stream === LEDGER ? `${kind} ${revision ?? ''}`.trim() : `${kind} of ${receipt(stream)}`,
    );
    return {
      differences: differences,
      report,
      verified: await verify(PARTNER, await fixture.entries(), options.digest),
    };
  } finally {
    await fixture.close();
  }
};
const receipt = (stream: string) => REVEALS.findIndex(({ reveal_id }) => revealStream(reveal_id) === stream);

/** The manipulation of the copy, and the options of the audit. */
export type Tampering = Parameters<typeof foundIn> extends [TestDatabase, ...infer T] ? T : never;
