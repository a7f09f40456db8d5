import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import {
  type BodyKeys,
  type EventForEndpoints,
  queueDeliveries,
} from '../../commands/webhooks/queue-deliveries.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { REVEAL_PREFIX, revealEvents } from '../../domain/reveals/events.ts';
import { type CustomParameters, sessionEvents, TAB_PREFIX } from '../../domain/sessions/events.ts';
import { type Envelope, revealEnvelope, sessionEnvelope } from '../../domain/webhooks/envelope.ts';
import { type SealedBody, type Subscribable, WEBHOOKS_PREFIX } from '../../domain/webhooks/events.ts';
import { type Position, type RecordedEvent, StoreUnavailable } from '../../event-store/port.ts';
import type { ProcessorDeps } from '../deps.ts';
import { type FollowedStreams, type FollowingProcessor, traceOf } from '../follow.ts';

interface QueueEventsDeps extends ProcessorDeps {
  readonly dayKeys: BodyKeys;
  readonly readModels: {
    /** Waits until these read models reach a position; false after `timeoutMs`. It hurries them unless `patient`. */
    reached(
      names: readonly string[],
      position: Position,
      timeoutMs: number,
      manner?: 'patient',
    ): Promise<boolean>;
    /** Asks these read models to apply waiting events and to save their positions at once. */
    hurry(names: readonly string[]): void;
  };
  /** Called with each body that this process has stored. */
  readonly onStored: (body: SealedBody) => void;
  /** Asks the read models that a claim waits for, in any process, to apply the log up to the queued deliveries at once. */
  readonly wake: (to: Position | null) => void;
  /** Opens the labels of sessions; null: their key was destroyed. */
  readonly labelsOf: (sessions: readonly SealedSession[]) => Promise<(CustomParameters | null)[]>;
}

interface SealedSession {
  readonly session_id: string;
  readonly first_seen_at: string;
  readonly sealed: string;
}

/** Endpoints' streams are followed because their read model keeps an ended subscription until this processor has passed its end. */
export const QUEUEING: FollowedStreams = {
  name: 'queue-webhook-events',
  prefixes: [TAB_PREFIX, REVEAL_PREFIX, WEBHOOKS_PREFIX],
};

/**
 * Events are batched for `BUSY_GATHER_MS` while a delivery was queued within the last `BUSY_MS`. Otherwise for longer: a capture or
 * reveal that an endpoint subscribes to wakes the tail.
 */
const BUSY_GATHER_MS = 4;
const BUSY_MS = 1_000;
const GATHER_MS = 500;
/** Interval and number of reads of the endpoints' table while its saved position is behind the one that the read model has reached. */
const READ_AGAIN_MS = 5;
const MAX_READS = 100;
/** The read model of endpoints. */
const ENDPOINTS = 'webhooks';
/** Short, because the read model of endpoints is led in this process, and stops by the same signal as this processor. */
const ENDPOINTS_TIMEOUT_MS = 1_000;
const MISSING_ROW_TIMEOUT_MS = 4_000;

/** What decides which endpoints are subscribed to an event. */
interface SubscriptionKey {
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly type: Subscribable;
}

interface Source extends SubscriptionKey {
  readonly stored: RecordedEvent;
  readonly session_id: string;
  readonly expires_at: string;
  /** The session, if the event itself contains it. */
  readonly session: SealedSession | null;
  /** Makes the webhook body from the session's labels and the tracker's reference. */
  readonly envelope: (custom: CustomParameters, reference: string | null) => Envelope;
}

/**
 * Queues events for the endpoints that were enabled and subscribed at the event's position, so that a replay gives the same
 * result; repeats are deduplicated by id. It waits until the read model of endpoints has applied the endpoints' events before
 * that, and for that of trackers or sessions only where a row is missing.
 */
export function queueWebhookEvents(deps: QueueEventsDeps): FollowingProcessor {
  const { store, dayKeys, wake, onStored } = deps;
  let queuedAt = Number.NEGATIVE_INFINITY;
  /**
   * Position of the last known event of any endpoint. The first batch takes its own end, because this process saw no earlier event;
   * null before it.
   */
  let endpointsTo: Position | null = null;
  /** Events up to this position may have been queued already, wholly or in part, by this process or an earlier leader. null: not known yet. */
  let repeatsTo: Position | null = null;

  const handleAll = async (events: readonly RecordedEvent[]): Promise<void> => {
    const last = events.at(-1)?.position;
    if (last === undefined) return;
    repeatsTo ??= (await store.head()) ?? last;
    endpointsTo = later(endpointsTo ?? last, events.findLast(isOfEndpoint)?.position);
    const sources = events.flatMap(sourceOf);
    if (sources.length === 0) return;
    const mayRepeat = sources.some(({ stored }) => stored.position <= (repeatsTo as Position));
    repeatsTo = later(repeatsTo, last);
    const webhook_ids = await subscribersOf(deps, sources, endpointsTo);
    const notifiable = sources
      .map((source, index) => ({ source, webhook_ids: webhook_ids[index] ?? [] }))
      .filter((one) => one.webhook_ids.length > 0);
    if (notifiable.length === 0) return;
    queuedAt = performance.now();
    wake(await queueDeliveries(store, dayKeys, await withBodies(deps, notifiable), { mayRepeat, onStored }));
  };
  return {
    ...QUEUEING,
    gatherMs: () => (performance.now() - queuedAt < BUSY_MS ? BUSY_GATHER_MS : GATHER_MS),
    begin: () => {
      endpointsTo = null;
      repeatsTo = null;
    },
    lane: () => 'all',
    handle: (event) => handleAll([event]),
    handleAll,
  };
}

const isOfEndpoint = ({ stream }: RecordedEvent): boolean => stream.startsWith(WEBHOOKS_PREFIX);

const later = (one: Position, other: Position = one): Position => (other > one ? other : one);

const readModelsBehind = (): Error => new StoreUnavailable('the read models are behind the log');

/** @throws StoreUnavailable where the read model does not reach the position in time */
async function subscribersOf(
  { pool, readModels }: QueueEventsDeps,
  sources: readonly Source[],
  to: Position,
): Promise<string[][]> {
  const events = sources.map((source) => ({ key: source, position: source.stored.position }));
  if (await readModels.reached([ENDPOINTS], to, ENDPOINTS_TIMEOUT_MS, 'patient')) {
    for (let tries = 0; tries < MAX_READS; tries += 1) {
      const subscribers = await subscribersAt(pool, events, to);
      if (subscribers !== null) return subscribers;
      // A read model without an event to apply saves its position up to a second later, unless it is hurried.
      readModels.hurry([ENDPOINTS]);
      await setTimeout(READ_AGAIN_MS);
    }
  }
  throw readModelsBehind();
}

/**
 * Returns, for each event, the endpoints that were subscribed to it at its position; null where the table has not reached the
 * position `to`. The query itself judges that: PostgreSQL may have lost, in a crash or failover, what this process saw there before.
 */
export async function subscribersAt(
  pool: pg.Pool,
  events: readonly { readonly key: SubscriptionKey; readonly position: Position }[],
  to: Position,
): Promise<string[][] | null> {
  const { rows } = await pool.query<{ webhook_ids: string[] | null }>({
    name: 'subscribers_at',
    text: SUBSCRIBERS,
    values: [
      events.map(({ key }) => key.partner_id),
      events.map(({ key }) => key.tracker_id),
      events.map(({ key }) => key.type),
      events.map(({ position }) => position),
      to,
    ],
  });
  const subscribers = rows.flatMap(({ webhook_ids }) => (webhook_ids === null ? [] : [webhook_ids]));
  return subscribers.length === rows.length ? subscribers : null;
}

/**
 * `webhook_ids` is null while the table has not reached $5. Open and ended subscriptions are read by an index each: a script may create
 * and delete endpoints all day.
 */
const SUBSCRIBERS = `
  select case when (select p.position >= $5 from read.projection p where p.name = '${ENDPOINTS}') then array(
    select s.webhook_id::text
    from (select * from read.webhook_subscription where partner_id = e.partner_id and to_position is null
          union all
          select * from read.webhook_subscription where partner_id = e.partner_id and to_position > e.position) s
    where s.from_position < e.position and coalesce(s.tracker_id, e.tracker_id) = e.tracker_id and e.type = any (s.events)
    order by s.webhook_id) end as webhook_ids
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[]) with ordinality e (partner_id, tracker_id, type, position, nth)
  order by e.nth`;

function sourceOf(stored: RecordedEvent): Source[] {
  const created = readEvent(sessionEvents, stored);
  if (created?.type === 'sessions.SessionCreated.v1') {
    const { data: session } = created;
    const envelope: Source['envelope'] = (custom, reference) => sessionEnvelope(session, reference, custom);
    return [{ ...session, stored, type: 'session.created', session, envelope }];
  }
  const completed = readEvent(revealEvents, stored);
  if (completed?.type === 'reveals.RevealCompleted.v1') {
    const { data: reveal } = completed;
    const envelope: Source['envelope'] = (custom) => revealEnvelope(reveal, custom);
    return [{ ...reveal, stored, type: 'reveal.completed', session: null, envelope }];
  }
  return [];
}

/** Makes the bodies of events from the reference of their tracker and the labels of their session. */
async function withBodies(
  deps: QueueEventsDeps,
  notifiable: readonly { readonly source: Source; readonly webhook_ids: readonly string[] }[],
): Promise<EventForEndpoints[]> {
  const to = notifiable.at(-1)?.source.stored.position as Position;
  const sources = notifiable.map(({ source }) => source);
  const references = await readAll(deps, 'trackers', to, referencesOf, ids(sources, 'tracker_id'));
  const revealed = sources.filter(({ session }) => session === null);
  const stored = await readAll(deps, 'sessions', to, storedSessions, ids(revealed, 'session_id'));
  const sessions = notifiable.map(({ source }) => source.session ?? stored.get(source.session_id) ?? null);
  const found = sessions.filter((session) => session !== null);
  const labels = await deps.labelsOf(found);
  const customOf = new Map(found.map(({ session_id }, index) => [session_id, labels[index] ?? null]));
  return notifiable.flatMap(({ source, webhook_ids }, index): EventForEndpoints[] => {
    const session = sessions[index];
    // The session and its events have expired.
    if (!session) return [];
    const custom = customOf.get(session.session_id) ?? null;
    // Destroyed labels mean an expired session. A completed reveal is still notified, because it is billed.
    if (custom === null && source.type === 'session.created') return [];
    const { stored: event, partner_id, tracker_id, expires_at, envelope } = source;
    return [
      {
        envelope: envelope(custom ?? {}, references.get(tracker_id) ?? null),
        partner_id,
        webhook_ids,
        key_day: session.first_seen_at.slice(0, 10),
        expires_at,
        source_position: String(event.position),
        context: {
          correlationId: event.metadata.$correlationId,
          causationId: event.id,
          ...traceOf(event),
          at: deps.clock.now(),
          partnerId: partner_id,
        },
      },
    ];
  });
}

const ids = (sources: readonly Source[], of: 'tracker_id' | 'session_id'): string[] => [
  ...new Set(sources.map((source) => source[of])),
];

/**
 * Reads the rows of these ids. They were projected before any caller could know the ids, but a crash of PostgreSQL may
 * have lost rows; then it waits for the projection and reads again.
 */
async function readAll<Row>(
  { pool, readModels }: Pick<QueueEventsDeps, 'pool' | 'readModels'>,
  name: string,
  to: Position,
  read: (pool: pg.Pool, wanted: readonly string[]) => Promise<Map<string, Row>>,
  wanted: readonly string[],
): Promise<Map<string, Row>> {
  if (wanted.length === 0) return new Map();
  const rows = await read(pool, wanted);
  if (rows.size === wanted.length) return rows;
  if (!(await readModels.reached([name], to, MISSING_ROW_TIMEOUT_MS))) throw readModelsBehind();
  return read(pool, wanted);
}

async function referencesOf(pool: pg.Pool, trackerIds: readonly string[]) {
  const { rows } = await pool.query<{ tracker_id: string; customer_reference: string | null }>({
    name: 'tracker_references',
    text: 'select tracker_id, customer_reference from read.tracker where tracker_id = any ($1)',
    values: [trackerIds],
  });
  return new Map(rows.map((row) => [row.tracker_id, row.customer_reference]));
}

async function storedSessions(
  pool: pg.Pool,
  sessionIds: readonly string[],
): Promise<Map<string, SealedSession>> {
  const { rows } = await pool.query<SealedSession>({
    name: 'sessions_of_reveals',
    text: `select session_id, sealed,
                  to_char(first_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as first_seen_at
           from read.session where session_id = any ($1)`,
    values: [sessionIds],
  });
  return new Map(rows.map((row) => [row.session_id, row]));
}
