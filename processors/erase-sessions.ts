/**
 * Ends sessions before their time, as if they had expired, with all that hangs on them: receipts, bodies of webhook events and their
 * deliveries. In this order, so that a repeat after a crash at any line still finds what is left: ids are recorded, hours are counted,
 * receipts go, then bodies, then the sessions. Units that were billed stay; a pending reveal ends without one.
 */
import type pg from 'pg';
import { type CommandContext, newId, ownContext } from '../commands/handle.ts';
import { keepOtherSessions, type LeftTab, readTabSessions } from '../commands/sessions/keep-sessions.ts';
import { deliveryId } from '../commands/webhooks/queue-deliveries.ts';
import { inChunks } from '../domain/kernel/chunks.ts';
import { REVEAL_PREFIX } from '../domain/reveals/events.ts';
import { revealStream } from '../domain/reveals/reveal.ts';
import { TAB_PREFIX } from '../domain/sessions/events.ts';
import { nextTabStream } from '../domain/sessions/tab.ts';
import { type TrackerHour, trackerHourEvents } from '../domain/usage/events.ts';
import { DELIVERIES_PREFIX, PAYLOAD_PREFIX } from '../domain/webhooks/events.ts';
import { type Position, type Revision, WrongExpectedRevision } from '../event-store/port.ts';
import { type ConsumerProgress, type Consumers, createConsumerProgress } from './consumers.ts';
import type { ErasureDeps } from './erasure-deps.ts';
import { type Expiring, type ExpiringId, noteExpiring, recordExpired, recordExpiry } from './expiry.ts';
import { inParallel } from './for-each.ts';
import { ConsumersBehind, deleteStream } from './retire-streams.ts';
import { expiringReveals } from './reveals/expiring-reveals.ts';
import { expiringSessions } from './sessions/expire-sessions.ts';
import { expiringPayloads, recordExpiredDeliveries } from './webhooks/expire-deliveries.ts';

/** A session to erase, as its row has it. */
export interface ErasableSession {
  readonly session_id: string;
  readonly partner_id: string;
  readonly stream: string;
}

/** How much was erased. */
export interface ErasedSessions {
  readonly sessions: number;
  readonly visits: number;
  readonly reveals: number;
  readonly payloads: number;
}

export const NOTHING_ERASED: ErasedSessions = { sessions: 0, visits: 0, reveals: 0, payloads: 0 };

export const addErased = (one: ErasedSessions, other: ErasedSessions): ErasedSessions => ({
  sessions: one.sessions + other.sessions,
  visits: one.visits + other.visits,
  reveals: one.reveals + other.reveals,
  payloads: one.payloads + other.payloads,
});

/** Sessions that are erased together: their rows stay until all of them are. */
const BATCH = 100;
const PROJECTED_MS = 30_000;

/**
 * Erases sessions and all that hangs on them from the event store and the read models. A repeat completes an interrupted run.
 * @param reason recorded with their ids, such as `erased`
 * @param onProgress called with the number of sessions that are done
 * @throws ConsumersBehind if a consumer of the log does not get on, and the port's errors
 */
export async function eraseSessions(
  deps: ErasureDeps,
  sessions: readonly ErasableSession[],
  reason: string,
  onProgress: (done: number) => void = () => undefined,
): Promise<ErasedSessions> {
  let erased = NOTHING_ERASED;
  for (const batch of inChunks(sessions, BATCH)) {
    await allPassed(deps);
    const current = await whereTheyAre(deps.pool, batch);
    const reveals = await revealsOf(
      deps.pool,
      batch.map(({ session_id }) => session_id),
    );
    erased = addErased(erased, await eraseBatch(deps, current, reveals, reason));
    onProgress(erased.sessions);
  }
  return erased;
}

/** Returns the sessions with their streams: an earlier batch may have kept one of them in its tab's next stream. */
async function whereTheyAre(
  pool: pg.Pool,
  sessions: readonly ErasableSession[],
): Promise<readonly ErasableSession[]> {
  const { rows } = await pool.query<{ session_id: string; stream: string }>({
    name: 'streams_of_sessions',
    text: 'select session_id, stream from read.session where session_id = any ($1::uuid[])',
    values: [sessions.map(({ session_id }) => session_id)],
  });
  const streams = new Map(rows.map((row) => [row.session_id, row.stream]));
  return sessions.map((one) => ({ ...one, stream: streams.get(one.session_id) ?? one.stream }));
}

/** Erases the receipts that were made of sessions while these were erased: a process knows a session for a second after that. */
export async function eraseLateReveals(
  deps: ErasureDeps,
  sessionIds: readonly string[],
  reason: string,
): Promise<ErasedSessions> {
  let erased = NOTHING_ERASED;
  for (const ids of inChunks(sessionIds, BATCH)) {
    await allPassed(deps);
    const reveals = await revealsOf(deps.pool, ids);
    if (reveals.length > 0) erased = addErased(erased, await eraseBatch(deps, [], reveals, reason));
  }
  return erased;
}

/** Waits until all consumers of what is deleted have passed the log as it is now, so that the read models say all there is. */
async function allPassed(deps: ErasureDeps): Promise<void> {
  const { store, pool, consumersOf, signal } = deps;
  const all = [TAB_PREFIX, REVEAL_PREFIX, PAYLOAD_PREFIX, DELIVERIES_PREFIX].map(consumersOf);
  const consumers: Consumers = {
    projections: [...new Set(all.flatMap(({ projections }) => projections))],
    processors: [...new Set(all.flatMap(({ processors }) => processors))],
  };
  const head = await store.head();
  const consumerProgress = createConsumerProgress(pool, consumers);
  for (let wait = 0; wait < MAX_WAITS; wait += 1) {
    if (signal.aborted || (await consumerProgress.waitFor(head, signal))) return;
  }
  const behind = await consumerProgress.before(head ?? 0n);
  throw new ConsumersBehind(
    `these are behind the log, nothing was erased by this step: ${behind.join(', ')}`,
  );
}

const MAX_WAITS = 6;

interface RevealRow {
  readonly reveal_id: string;
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly created_at: Date;
}

const revealsOf = async (pool: pg.Pool, sessionIds: readonly string[]): Promise<RevealRow[]> =>
  (
    await pool.query<RevealRow>({
      name: 'reveals_to_erase',
      text: `select reveal_id, partner_id, tracker_id, created_at from read.reveal where session_id = any ($1::uuid[])`,
      values: [sessionIds],
    })
  ).rows;

async function eraseBatch(
  deps: ErasureDeps,
  sessions: readonly ErasableSession[],
  reveals: readonly RevealRow[],
  reason: string,
): Promise<ErasedSessions> {
  const { pool, clock } = deps;
  const at = new Date(clock.now());
  const idOf = (partner_id: string, id: string): ExpiringId => ({ id, partner_id, expires_at: at, reason });
  const sessionIds = sessions.map((one) => idOf(one.partner_id, one.session_id));
  const revealIds = reveals.map((one) => idOf(one.partner_id, one.reveal_id));
  const bodyIds = [
    ...sessions.map((one) => idOf(one.partner_id, `evt_session_${one.session_id}`)),
    ...reveals.map((one) => idOf(one.partner_id, `evt_reveal_${one.reveal_id}`)),
  ];
  await noteExpiring(pool, expiringSessions.name, sessionIds);
  await noteExpiring(pool, expiringReveals.name, revealIds);
  await noteExpiring(pool, expiringPayloads.name, bodyIds);

  const erased = new Set(sessions.map(({ session_id }) => session_id));
  const tabs = [...new Set(sessions.map(({ stream }) => stream))];
  await keepCounts(deps, await hoursOf(deps, sessions, reveals, erased));
  await deleteReveals(deps, reveals);
  const payloads = await eraseBodies(deps, bodyIds, reason);
  let visits = 0;
  await inParallel(tabs, async (stream) => {
    const ofTab = await eraseFromTab(deps, stream, erased);
    visits += ofTab;
  });
  await record(deps, expiringReveals, revealIds);
  await record(deps, expiringSessions, sessionIds);
  return { sessions: sessions.length, visits, reveals: reveals.length, payloads };
}

/** Records that ids ended, and waits until no answer shows what they named. */
async function record(deps: ErasureDeps, kind: Expiring, ids: readonly ExpiringId[]): Promise<void> {
  const projected = (name: string, position: Position | null): Promise<boolean> =>
    deps.progress.reached([name], position, PROJECTED_MS);
  if (!(await recordExpired(kind, { ...deps, projected }, ids)))
    throw new ConsumersBehind(`the read model ${kind.name} is behind the log`);
}

/** A partner's tracker, and an hour in which sessions or reveals of it began that are counted by their events alone. */
interface CountedHour {
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly hour: string;
}

/** Lists the hours whose counts would be lost: of other sessions too that share a stream, because its events are deleted. */
async function hoursOf(
  { store }: ErasureDeps,
  sessions: readonly ErasableSession[],
  reveals: readonly RevealRow[],
  erased: ReadonlySet<string>,
): Promise<CountedHour[]> {
  const hours = new Map<string, CountedHour>();
  const add = (partner_id: string, tracker_id: string, hour: string): void =>
    void hours.set(`${tracker_id} ${hour}`, { partner_id, tracker_id, hour });
  for (const { partner_id, tracker_id, created_at } of reveals) {
    add(partner_id, tracker_id, created_at.toISOString().slice(0, 13));
  }
  const partnerOf = new Map(sessions.map(({ stream, partner_id }) => [stream, partner_id]));
  await inParallel(partnerOf, async ([stream, partner_id]) => {
    const left = await readTabSessions(store, stream, erased);
    for (const [tracker_id, hour] of left.hours) add(partner_id, tracker_id, hour);
  });
  return [...hours.values()];
}

/**
 * Records how many sessions and reveals began in these hours, since a rebuild may not find the events behind them. What begins
 * meanwhile is counted by its own event: the record stands for what precedes its mark in the log.
 */
async function keepCounts(deps: ErasureDeps, hours: readonly CountedHour[]): Promise<void> {
  const { store, pool, clock, progress } = deps;
  for (const [partner_id, own] of Map.groupBy(hours, (one) => one.partner_id)) {
    const mark_id = newId();
    const context = ownContext(clock, partner_id);
    const append = (type: keyof typeof trackerHourEvents, data: object): Promise<Position | null> =>
      recordExpiry(
        store,
        partner_id,
        trackerHourEvents,
        { type, data: { partner_id, mark_id, ...data } },
        context,
      );
    const marked = await append('usage.TrackerHoursMarked.v1', {
      hours: own.map(({ tracker_id, hour }) => [tracker_id, hour]),
    });
    if (!(await progress.reached([TRACKER_USAGE], marked ?? (await store.head()), PROJECTED_MS)))
      throw new ConsumersBehind(`the read model ${TRACKER_USAGE} is behind the log`);
    const counts = await markedCounts(pool, mark_id, own);
    await append('usage.TrackerHoursKept.v1', { counts });
  }
}

const TRACKER_USAGE = 'tracker-usage';

/** Reads the counts as of a mark. An hour that was closed since has none: its totals are recorded. */
async function markedCounts(
  pool: pg.Pool,
  markId: string,
  hours: readonly CountedHour[],
): Promise<TrackerHour[]> {
  const { rows } = await pool.query<{ count: TrackerHour }>(
    `select json_build_array(t.tracker_id, to_char(t.hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24'),
                             t.marked_sessions, t.marked_reveals) as count
     from unnest($2::uuid[], $3::timestamptz[]) as n (tracker_id, hour)
     join read.tracker_hour t on t.tracker_id = n.tracker_id and t.hour = n.hour
     where t.mark_id = $1`,
    [markId, hours.map(({ tracker_id }) => tracker_id), hours.map(({ hour }) => `${hour}:00:00Z`)],
  );
  return rows.map(({ count }) => count);
}

const progressOf = ({ pool, consumersOf }: ErasureDeps, prefix: string): ConsumerProgress =>
  createConsumerProgress(pool, consumersOf(prefix));

/** Deletes the streams of reveals. One that completes before that is billed and notified; later it cannot. */
async function deleteReveals(deps: ErasureDeps, reveals: readonly RevealRow[]): Promise<void> {
  const consumerProgress = progressOf(deps, REVEAL_PREFIX);
  const ids = reveals.map(({ reveal_id }) => reveal_id);
  await inParallel(ids, async (id) => {
    await deleteStream({ ...deps, consumerProgress }, revealStream(id));
  });
  if (ids.length > 0)
    await deps.pool.query('delete from work.awaited_result where reveal_id = any ($1::uuid[])', [ids]);
}

interface DeliveryToExpire {
  readonly delivery_id: string;
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly created_at: Date;
}

/**
 * Ends the deliveries of events, then deletes the events' bodies: of these events, and of those that an interrupted run left.
 * @returns the number of bodies
 */
async function eraseBodies(deps: ErasureDeps, ids: readonly ExpiringId[], reason: string): Promise<number> {
  const { pool } = deps;
  // What a reveal has queued that completed meanwhile is in the read models too by now.
  await allPassed(deps);
  const { rows: left } = await pool.query<ExpiringId>(
    'select id, partner_id, expires_at, reason from work.expiring where kind = $1 and reason = $2',
    [expiringPayloads.name, reason],
  );
  const all = [...new Map([...ids, ...left].map((one) => [one.id, one])).values()];
  await recordExpiredDeliveries(deps, await deliveriesOf(pool, all));
  const { rows } = await pool.query<{ event_id: string }>(
    'select event_id from read.webhook_payload where event_id = any ($1)',
    [all.map(({ id }) => id)],
  );
  const consumerProgress = progressOf(deps, PAYLOAD_PREFIX);
  await inParallel(rows, async ({ event_id }) => {
    await deleteStream({ ...deps, consumerProgress }, `${PAYLOAD_PREFIX}${event_id}`);
  });
  const stored = new Set(rows.map(({ event_id }) => event_id));
  await record(
    deps,
    expiringPayloads,
    all.filter(({ id }) => stored.has(id)),
  );
  await pool.query('delete from work.expiring where kind = $1 and id = any ($2)', [
    expiringPayloads.name,
    all.map(({ id }) => id),
  ]);
  return rows.length;
}

/** A delivery's id derives from its endpoint and its event, so that no index over events is needed. */
async function deliveriesOf(pool: pg.Pool, events: readonly ExpiringId[]): Promise<DeliveryToExpire[]> {
  const partners = [...new Set(events.map(({ partner_id }) => partner_id))];
  const { rows: endpoints } = await pool.query<{ webhook_id: string; partner_id: string }>(
    'select webhook_id, partner_id from read.webhook_endpoint where partner_id = any ($1::uuid[])',
    [partners],
  );
  const ids = events.flatMap(({ id, partner_id }) =>
    endpoints.filter((one) => one.partner_id === partner_id).map((one) => deliveryId(one.webhook_id, id)),
  );
  const { rows } = await pool.query<DeliveryToExpire>(
    `select delivery_id, webhook_id, partner_id, created_at from read.webhook_delivery
     where delivery_id = any ($1::uuid[]) and state <> 'expired'`,
    [ids],
  );
  return rows;
}

/**
 * Deletes a tab's stream after the sessions in it that are not erased were appended to its next one; then does the same with that,
 * if an interrupted run has left erased ones there. @returns the number of erased visits
 */
async function eraseFromTab(deps: ErasureDeps, first: string, erased: ReadonlySet<string>): Promise<number> {
  const { store, clock, signal } = deps;
  const consumerProgress = progressOf(deps, TAB_PREFIX);
  let visits = 0;
  for (let stream = first; ; stream = nextTabStream(stream)) {
    const left = await keepUntilDeleted(stream);
    if (left !== null) visits = Math.max(visits, left.visits);
    const next = await readTabSessions(store, nextTabStream(stream), erased);
    if (!hasErased(next, erased)) return visits;
  }

  /** @returns null if the stream was deleted before */
  async function keepUntilDeleted(stream: string): Promise<LeftTab | null> {
    const context: CommandContext = ownContext(clock);
    for (let wait = 0; wait < MAX_TAB_WAITS && !signal.aborted; wait += 1) {
      const left = await keepOtherSessions(store, stream, erased, context);
      if (left.last === null) return null;
      if (!(await consumerProgress.waitFor(left.last.position, signal))) continue;
      if (await isDeletedAt(stream, left.last.revision)) return left;
    }
    throw new ConsumersBehind(`${stream} has not been read by all consumers`);
  }

  /** @returns false if a visit was appended meanwhile: it is kept too, and then the stream is deleted */
  async function isDeletedAt(stream: string, revision: Revision): Promise<boolean> {
    try {
      await store.expire(stream, revision);
      return true;
    } catch (error) {
      if (error instanceof WrongExpectedRevision) return false;
      throw error;
    }
  }
}

/** Waits for consumers, and visits of one tab that may arrive meanwhile. */
const MAX_TAB_WAITS = 50;

const hasErased = ({ sessionIds }: LeftTab, erased: ReadonlySet<string>): boolean =>
  [...sessionIds].some((id) => erased.has(id));
