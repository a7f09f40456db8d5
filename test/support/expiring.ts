/** Sessions and reveals with an expiry, the consumers that must have read them, and the sweep. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { type Capture, createCaptureVisit } from '../../commands/sessions/capture-visit.ts';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import type { Position } from '../../event-store/port.ts';
import { createDayKeys } from '../../platform/crypto/keyring.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { type SweepOptions, sweep } from '../../processors/expiry.ts';
import { expiringReveals } from '../../processors/reveals/expiring-reveals.ts';
import { expiringSessions } from '../../processors/sessions/expire-sessions.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
import { sessions } from '../../projections/sessions/sessions.ts';
import { type Completed, complete, completedReveal } from './reveals.ts';
import { startTestStack } from './test-stack.ts';

/** The start of sessions and reveals, and the instant at which they expire. */
export const BEGUN = Date.parse('2026-03-01T12:00:00.000Z');
export const EXPIRED = BEGUN + 30 * DAY;

const PROJECTIONS = [sessions, reveals];
const READER = 'reader';
const PROJECTED_WITHIN_MS = 10_000;

export type Expiry = Awaited<ReturnType<typeof openExpiry>>;

/** A stack whose clock says `BEGUN`, with one processor whose checkpoint the test sets, initially past everything. */
export const openExpiry = async () => {
  const stack = await startTestStack();
  const { store, pool, clock, progress } = stack;
  const master = masterKeyFrom(randomBytes(32));
  const dayKeys = createDayKeys({ pool, master, clock });
  const capture = createCaptureVisit(store, dayKeys, async () => ({
    release: () => undefined,
    confirm: () => undefined,
  }));
  stack.project(PROJECTIONS);
  await pool.query('insert into work.processor (name, position) values ($1, 9e18)', [READER]);
  const warnings: object[] = [];
  const options: SweepOptions = {
    store,
    pool,
    clock,
    log: { warn: (what: object) => void warnings.push(what) } as unknown as Logger,
    consumers: { projections: PROJECTIONS.map(({ name }) => name), processors: [READER] },
    closedBefore: async () => '2100-01-01',
    projected: (name, position) => progress.reached([name], position, PROJECTED_WITHIN_MS),
    onBlocked: () => undefined,
    signal: new AbortController().signal,
    forMs: 60_000,
  };
  const caughtUp = () => stack.caughtUp(PROJECTIONS);
  const rows = (table: string, partner: string) =>
    stack.rows(`select * from read.${table} where partner_id = $1`, [partner]);
  const visit = (over: Partial<Capture> = {}) => {
    const ids = { tracker_id: randomUUID(), partner_id: randomUUID(), token: randomUUID() };
    const visitor = { ip: '8.8.8.8', visitor_country: 'US', custom: {} };
    return capture({ ...ids, ...visitor, visit_id: randomUUID(), ...over }, stack.context());
  };
  return {
    stack,
    master,
    dayKeys,
    options,
    warnings,
    caughtUp,
    rows,
    visit,
    at: (instant: number): void => {
      clock.set(instant);
    },
    /** null: the processor has no checkpoint. */
    readerAt: (position: bigint | null) =>
      pool.query('update work.processor set position = $2 where name = $1', [READER, position]),
    /** A new visitor's visit, or the given one. */
    session: async (over: Partial<Capture> = {}) => {
      const ids = { partner_id: randomUUID(), tracker_id: randomUUID(), token: randomUUID(), ...over };
      await visit(ids);
      await caughtUp();
      const [{ session_id, stream }] = (await rows('session', ids.partner_id)) as [
        { session_id: string; stream: string },
      ];
      return { ...ids, session_id, stream };
    },
    reveal: async (over: Partial<Completed> = {}) => {
      const reveal = completedReveal({ partner_id: randomUUID(), completed_at: isoTime(BEGUN), ...over });
      const position: Position = await complete(store, reveal);
      return { ...reveal, position, stream: `reveal-${reveal.reveal_id}` };
    },
    sweepSessions: async (over: Partial<SweepOptions> = {}) => {
      await caughtUp();
      await sweep(expiringSessions, { ...options, ...over });
      await caughtUp();
    },
    sweepReveals: async (over: Partial<SweepOptions> = {}) => {
      await caughtUp();
      await sweep(expiringReveals, { ...options, ...over });
      await caughtUp();
    },
    /** The events that the store's database holds, hidden or not. */
    stored: async (stream: string) =>
      (
        await stack.rows('select revision from eventlog.event where stream = $1 order by position', [stream])
      ).map(({ revision }) => revision),
    /** The ids listed as expired on the day of `EXPIRED`. */
    expiredIds: async (partner: string) => {
      const stream = expiredStream(partner, isoTime(EXPIRED).slice(0, 10));
      const events = await Array.fromAsync(store.readStream(stream));
      return events.map(({ type, data }) => ({ type, data }));
    },
  };
};
