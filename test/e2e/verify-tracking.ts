/** Checks the acknowledged sessions and reveals over HTTP, by the audit and in the event log. */
import { expect } from 'vitest';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { REVEAL_PREFIX } from '../../domain/reveals/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Called } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import type { Service } from '../support/service.ts';
import { revealsIn } from './reveals-in-log.ts';
import { readLog } from './submissions.ts';
import { type Customer, follow, reveal } from './visitors.ts';

/** A killed process's attempts are due again after their lease. */
const COMPLETED_MS = 50_000;
const POLL_MS = 250;
const AT_ONCE = 8;

/** Checks everything that was acknowledged since the beginning; of the reveals those since the last check. */
export const verifyRecord = async (service: Service, customer: Customer): Promise<void> => {
  const { record } = customer;
  expect(record.unexpected).toEqual([]);
  await verifySessions(service, customer);
  await receiptsOf(service, customer, record.checkedReveals);
  record.checkedReveals = record.reveals.size;
  await audit(service, customer);
  await verifyUsage(service, customer);
};

/** Every acknowledged reveal completes, and every one with data has one unit. */
export const verifyCompleted = async (
  service: Service,
  store: EventStore,
  customer: Customer,
): Promise<void> => {
  await eventually(
    'all acknowledged reveals are complete',
    async () => (await receiptsOf(service, customer, 0)).filter(({ status }) => status !== 200).length,
    (pending) => pending === 0,
    COMPLETED_MS,
    POLL_MS,
  );
  const receipts = await receiptsOf(service, customer, 0);
  const { units } = await audit(service, customer);
  const reveals = revealsIn(await readLog(store, [REVEAL_PREFIX, 'billing-']), customer.partner_id);
  for (const [id, one] of reveals) {
    const unit = one.hasData ? 1 : 0;
    const right = one.completed === 0 ? [1, 0, 0, 0] : [1, 1, 1, unit];
    expect([one.requested, one.completed, one.billed, one.units], id).toEqual(right);
  }
  expect(receipts.length).toBeGreaterThan(0);
  for (const { body } of receipts) {
    const one = reveals.get(body.reveal_id);
    expect([one?.completed, one?.units], body.reveal_id).toEqual([1, body.billable_units]);
  }
  const all = [...reveals.values()];
  expect(units).toBe(all.filter(({ hasData }) => hasData).length);
  expect(all.some(({ completed, hasData }) => completed === 1 && !hasData)).toBe(true);
};

/** Every tab with an acknowledged visit is one session, and the feed shows each session once, in order. */
const verifySessions = async (service: Service, customer: Customer): Promise<void> => {
  const { key, record } = customer;
  await eventually(
    'the follower is at the end of the feed',
    () => follow(service, customer),
    ({ status, body }) => status === 200 && !body.has_more && record.followed.length >= record.captured.size,
  );
  const sessions: string[] = [];
  const tabs: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await service.call('GET', `/v1/sessions?limit=100${cursor}`, { key });
    for (const { session_id, custom } of body.sessions) {
      sessions.push(session_id);
      tabs.push(custom.tab);
    }
    cursor = body.has_more ? `&cursor=${body.next_cursor}` : null;
  }
  expect(record.followed).toEqual(sessions);
  const there = new Set(tabs);
  expect(there.size, 'a tab has two sessions').toBe(tabs.length);
  expect([...record.captured].filter((tab) => !there.has(tab))).toEqual([]);
  expect(tabs.filter((tab) => !record.tabs.has(tab))).toEqual([]);
};

/**
 * Every acknowledged reveal from the `first` on exists under its key and has a receipt.
 * @returns the receipts
 */
const receiptsOf = async (service: Service, { key, record }: Customer, first: number): Promise<Called[]> => {
  const left = [...record.reveals].slice(first);
  const receipts: Called[] = [];
  const check = async (): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) {
      const [idempotencyKey, { session_id, reveal_id }] = one;
      const again = await reveal(service, key, session_id, idempotencyKey);
      expect([200, 202], JSON.stringify(again.body)).toContain(again.status);
      expect(again.body).toMatchObject({ reveal_id, session_id });
      const receipt = await service.call('GET', `/v1/reveals/${reveal_id}`, { key });
      expect([200, 202], JSON.stringify(receipt.body)).toContain(receipt.status);
      expect(receipt.body).toMatchObject({ reveal_id, session_id });
      receipts.push(receipt);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, check));
  return receipts;
};

/** @returns the audit's report, which has no difference */
const audit = async (service: Service, { partner_id }: Customer): Promise<{ units: number }> => {
  const { code, stdout, stderr } = await service.cli('audit', 'billing', '--partner', partner_id, '--json');
  expect(code, `${stdout}${stderr}`).toBe(0);
  return JSON.parse(stdout);
};

const verifyUsage = async (service: Service, { key, tracker_id, record }: Customer): Promise<void> => {
  const [from, to] = [utcDay(Date.now() - DAY), utcDay(Date.now() + 2 * DAY)];
  const path = `/v1/trackers/${tracker_id}/usage?from=${from}&to=${to}`;
  const { sessions, capture_requests } = (await service.call('GET', path, { key })).body.totals;
  expect(sessions).toBe(record.followed.length);
  expect(capture_requests).toBeGreaterThanOrEqual(record.captures);
  expect(capture_requests).toBeLessThanOrEqual(record.captures + record.uncertainCaptures);
};
