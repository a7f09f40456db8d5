/** Checks the acknowledged submissions over HTTP, by their usage and in the event log. */
import { expect } from 'vitest';
import type { EventStore } from '../../event-store/port.ts';
import type { Called } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import type { Service } from '../support/service.ts';
import { type Caller, type CallerRecord, oneMore } from './load.ts';
import {
  type ReservationRow,
  readLog,
  reservationsIn,
  roundsIn,
  SUBMISSION_PREFIXES,
} from './submissions.ts';

/** A killed process's attempts are due again after their lease. */
const COMPLETED_MS = 50_000;
const SETTLED_MS = 30_000;
const POLL_MS = 250;
const AT_ONCE = 8;

export interface Submissions {
  readonly service: Service;
  readonly store: EventStore;
  readonly callers: readonly Caller[];
  readonly record: CallerRecord;
}

/** Every call that was answered is counted, every acknowledged address is known, and no reservation is doubled. */
export const verifySubmissions = async (submissions: Submissions): Promise<void> => {
  const { callers, record } = submissions;
  expect(record.unexpected).toEqual([]);
  for (const caller of callers) {
    const { key } = caller;
    const { requests } = (await usageOf(submissions, key)).totals;
    const counted = record.counted.get(key) ?? 0;
    expect(requests).toBeGreaterThanOrEqual(counted);
    expect(requests).toBeLessThanOrEqual(counted + (record.uncertain.get(key) ?? 0));
    await eachAcknowledged(submissions, caller, ({ status, body }, ip) =>
      expect([200, 202], `${ip}: ${JSON.stringify(body)}`).toContain(status),
    );
  }
  const rows = await ownReservations(submissions);
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) {
    expect([row.made, row.submitted <= 1, row.settled <= 1], JSON.stringify(row)).toEqual([1, true, true]);
  }
  const onePerPartner = new Set(rows.map(({ partner_id, ip }) => `${partner_id} ${ip}`));
  expect(onePerPartner.size).toBe(rows.length);
};

/** Every submission completes, in one round for each address, and every reservation is settled once. */
export const verifySettled = async (submissions: Submissions): Promise<void> => {
  for (const { key } of submissions.callers) {
    await eventually(
      'all submissions have completed',
      async () => (await usageOf(submissions, key)).enrichment,
      ({ pending }) => pending === 0,
      COMPLETED_MS,
      POLL_MS,
    );
  }
  await eventually(
    'all reservations are settled',
    async () => (await ownReservations(submissions)).filter((row) => row.settled !== 1),
    (unsettled) => unsettled.length === 0,
    SETTLED_MS,
    POLL_MS,
  );
  const rounds = roundsIn(await readLog(submissions.store, SUBMISSION_PREFIXES));
  for (const { ip } of await ownReservations(submissions)) expect(rounds.get(ip), ip).toBe(1);
  for (const caller of submissions.callers) {
    await eachAcknowledged(submissions, caller, ({ status }, ip) => expect(status, ip).toBe(200));
  }
};

const get = ({ service }: Submissions, key: string, path: string) => service.call('GET', path, { key });

const usageOf = async (submissions: Submissions, key: string) =>
  (await get(submissions, key, '/v1/usage')).body;

/** Those of this run's partners: an event store may hold other runs' too. */
const ownReservations = async ({ store, callers }: Submissions): Promise<ReservationRow[]> => {
  const own = new Set(callers.map(({ partner_id }) => partner_id));
  return reservationsIn(await readLog(store, SUBMISSION_PREFIXES)).filter(({ partner_id }) =>
    own.has(partner_id),
  );
};

/** Looks up each address that was acknowledged. */
const eachAcknowledged = async (
  submissions: Submissions,
  { key, partner_id }: Caller,
  check: (answer: Called, ip: string) => void,
): Promise<void> => {
  const { record } = submissions;
  const left = [...(record.acknowledged.get(partner_id) ?? [])];
  const checkLeft = async (): Promise<void> => {
    for (let ip = left.pop(); ip !== undefined; ip = left.pop()) {
      const answer = await get(submissions, key, `/v1/lookup?ip=${ip}`);
      oneMore(record.counted, key);
      check(answer, ip);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, checkLeft));
};
