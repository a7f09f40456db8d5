import type pg from 'pg';
import { type Addressed, type BodyKeys, queueDeliveries } from '../../commands/webhooks/queue-deliveries.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { REVEAL_PREFIX, revealEvents } from '../../domain/reveals/events.ts';
import { type CustomParameters, sessionEvents, TAB_PREFIX } from '../../domain/sessions/events.ts';
import { type Envelope, revealEnvelope, sessionEnvelope } from '../../domain/webhooks/envelope.ts';
import {
  endpointEvents,
  type SnapshottedEndpoint,
  type Subscribable,
  WEBHOOKS_PREFIX,
} from '../../domain/webhooks/events.ts';
import {
  type EventStore,
  type Position,
  type RecordedEvent,
  StoreUnavailable,
} from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type FollowedStreams, type FollowingProcessor, traceOf } from '../follow.ts';

interface Endpoint {
  readonly webhook_id: string;
  readonly partner_id: string;
  /** null: all trackers of the partner. */
  readonly tracker_id: string | null;
  /** Enabled periods with their subscribed events, by log position; `to` null: still open. */
  readonly spans: Map<bigint, { readonly events: readonly string[]; to: bigint | null }>;
  /** Log position of its deletion. */
  deletedAt: bigint | null;
}

interface Row {
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly tracker_id: string | null;
  readonly spans: readonly { readonly from: string; readonly to: string | null; readonly events: string[] }[];
}

/** The subscriptions of all endpoints at every position that a follower may still ask about. */
interface Subscriptions {
  /** Applies an event of endpoints. Idempotent. */
  apply(stored: RecordedEvent): void;
  subscribersOf(
    what: { readonly partner_id: string; readonly tracker_id: string; readonly type: Subscribable },
    position: Position,
  ): string[];
  /** Drops what only earlier positions need: a script may create and delete endpoints all day. */
  dropBefore(position: Position): void;
  /** Number of endpoints in memory. */
  readonly size: number;
}

/** Reads neither deleted endpoints nor periods that ended before: a script may make any number of both. */
const SUBSCRIPTIONS = `
  with period as (
         select webhook_id, from_position, to_position, events from read.webhook_subscription where to_position is null
         union all
         select webhook_id, from_position, to_position, events from read.webhook_subscription where to_position > $1)
  select e.webhook_id, e.partner_id, e.tracker_id,
         coalesce(json_agg(json_build_object('from', p.from_position::text, 'to', p.to_position::text, 'events', p.events))
           filter (where p.webhook_id is not null), '[]') as spans
  from read.webhook_endpoint e left join period p on p.webhook_id = e.webhook_id
  where e.webhook_id = any (array(
    select webhook_id from read.webhook_endpoint where deleted_at is null union select webhook_id from period))
  group by e.webhook_id`;

/** Loads the subscriptions as of a position that the read model has applied; later events may be applied again. */
export const loadSubscriptions = async (pool: pg.Pool, after: Position | null): Promise<Subscriptions> => {
  const { rows } = await pool.query<Row>({
    name: 'load_subscriptions',
    text: SUBSCRIPTIONS,
    values: [after ?? -1n],
  });
  return new EndpointPeriods(rows);
};

class EndpointPeriods implements Subscriptions {
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #ofPartner = new Map<string, Set<Endpoint>>();

  constructor(rows: readonly Row[]) {
    for (const { spans, ...endpoint } of rows) {
      const each = spans.map(
        ({ from, to, events }) => [BigInt(from), { events, to: to === null ? null : BigInt(to) }] as const,
      );
      this.#add({ ...endpoint, spans: new Map(each), deletedAt: null });
    }
  }

  get size(): number {
    return this.#endpoints.size;
  }

  apply(stored: RecordedEvent): void {
    const event = readEvent(endpointEvents, stored);
    if (event === null) return;
    const { type, data } = event;
    if (type === 'webhooks.EndpointsSnapshotted.v1') {
      for (const endpoint of data.endpoints) this.#applySnapshot(endpoint, stored);
      return;
    }
    if (type === 'webhooks.EndpointCreated.v1' && !this.#endpoints.has(data.webhook_id)) {
      const { webhook_id, partner_id, tracker_id } = data;
      this.#add({ webhook_id, partner_id, tracker_id, spans: new Map(), deletedAt: null });
    }
    const endpoint = this.#endpoints.get(data.webhook_id);
    if (endpoint === undefined) return;
    if (type === 'webhooks.EndpointCreated.v1') change(endpoint, stored.position, data.events);
    if (type === 'webhooks.EndpointUpdated.v1') {
      change(endpoint, stored.position, data.enabled ? data.events : null);
    }
    if (type === 'webhooks.EndpointDeleted.v1') {
      change(endpoint, stored.position, null);
      endpoint.deletedAt = stored.position;
    }
  }

  subscribersOf(
    { partner_id, tracker_id, type }: Parameters<Subscriptions['subscribersOf']>[0],
    position: Position,
  ): string[] {
    return [...(this.#ofPartner.get(partner_id) ?? [])]
      .filter(
        (endpoint) =>
          (endpoint.tracker_id ?? tracker_id) === tracker_id &&
          [...endpoint.spans].some(
            ([from, { to, events }]) =>
              from < position && (to === null || position < to) && events.includes(type),
          ),
      )
      .map(({ webhook_id }) => webhook_id)
      .sort();
  }

  dropBefore(position: Position): void {
    for (const endpoint of this.#endpoints.values()) {
      const { spans, deletedAt } = endpoint;
      for (const [from, { to }] of spans) if (to !== null && to <= position) spans.delete(from);
      if (deletedAt !== null && deletedAt < position) this.#remove(endpoint);
    }
  }

  #add(endpoint: Endpoint): void {
    this.#endpoints.set(endpoint.webhook_id, endpoint);
    const mine = this.#ofPartner.get(endpoint.partner_id) ?? new Set();
    this.#ofPartner.set(endpoint.partner_id, mine.add(endpoint));
  }

  #remove(endpoint: Endpoint): void {
    this.#endpoints.delete(endpoint.webhook_id);
    const mine = this.#ofPartner.get(endpoint.partner_id);
    mine?.delete(endpoint);
    if (mine?.size === 0) this.#ofPartner.delete(endpoint.partner_id);
  }

  /**
   * The event that created an endpoint may have been truncated; a known endpoint already has the snapshot's facts. A deleted
   * one is subscribed to nothing, and no later event would remove it from memory.
   */
  #applySnapshot(
    { webhook_id, tracker_id, enabled, events, deleted_at }: SnapshottedEndpoint,
    { stream, position }: RecordedEvent,
  ): void {
    if (deleted_at !== null || this.#endpoints.has(webhook_id)) return;
    const partner_id = stream.slice(WEBHOOKS_PREFIX.length);
    const endpoint: Endpoint = { webhook_id, partner_id, tracker_id, spans: new Map(), deletedAt: null };
    this.#add(endpoint);
    change(endpoint, position, enabled ? events : null);
  }
}

/** Sets the subscribed events from a position on; null: none. */
const change = ({ spans }: Endpoint, position: bigint, events: readonly string[] | null): void => {
  for (const [from, span] of spans) {
    if (from < position && (span.to === null || span.to > position)) span.to = position;
  }
  // The loaded rows may already contain this period and its end.
  if (events !== null && !spans.has(position)) spans.set(position, { events, to: null });
};

interface QueueEventsDeps {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly dayKeys: BodyKeys;
  /** Waits until read models reach a position, and wakes them; false after a time limit. */
  readonly applied: (names: readonly string[], position: Position) => Promise<boolean>;
  /** Opens the labels of sessions; null: their key was destroyed. */
  readonly labelsOf: (sessions: readonly SealedSession[]) => Promise<(CustomParameters | null)[]>;
}

interface SealedSession {
  readonly session_id: string;
  readonly first_seen_at: string;
  readonly sealed: string;
}

export const QUEUEING: FollowedStreams = {
  name: 'queue-webhook-events',
  prefixes: [TAB_PREFIX, REVEAL_PREFIX, WEBHOOKS_PREFIX],
};

/** Read models that are woken after queueing; `bin/modules/webhooks.ts` lists all that a claim waits for. */
const WOKEN_AFTER_QUEUEING = ['deliveries', 'payloads'];
/** Events are batched for `GATHER_MS` while a delivery was queued within the last `BUSY_MS`. */
const GATHER_MS = 4;
const BUSY_MS = 1_000;

interface Source {
  readonly stored: RecordedEvent;
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly session_id: string;
  readonly type: Subscribable;
  readonly expires_at: string;
  /** The session, if the event itself contains it. */
  readonly session: SealedSession | null;
  /** Makes the webhook body from the session's labels and the tracker's reference. */
  readonly envelope: (custom: CustomParameters, reference: string | null) => Envelope;
}

/**
 * Queues events for the endpoints that were enabled and subscribed at the event's position, so that a replay gives the same
 * result; repeats are deduplicated by id. It waits for a read model in two cases only: at its start for "webhooks", from which it
 * loads the subscriptions (then it follows endpoints itself), and where a tracker's or revealed session's row is missing.
 */
export const queueWebhookEvents = (deps: QueueEventsDeps): FollowingProcessor => {
  const { pool, store, dayKeys, applied } = deps;
  let subscriptions: Subscriptions | null = null;
  let queuedAt = Number.NEGATIVE_INFINITY;
  const handleAll = async (events: readonly RecordedEvent[]): Promise<void> => {
    const known = subscriptions;
    const [first] = events;
    if (known === null || first === undefined) throw new TypeError('handled an event before begin()');
    for (const event of events) known.apply(event);
    const notifiable = events.flatMap(sourceOf).flatMap((source) => {
      const webhook_ids = known.subscribersOf(source, source.stored.position);
      return webhook_ids.length === 0 ? [] : [{ source, webhook_ids }];
    });
    if (notifiable.length > 0) {
      queuedAt = performance.now();
      const queued = await queueDeliveries(store, dayKeys, await withRecipients(deps, notifiable));
      if (queued !== null) void applied(WOKEN_AFTER_QUEUEING, queued);
    }
    known.dropBefore(first.position);
  };
  return {
    ...QUEUEING,
    gatherMs: () => (performance.now() - queuedAt < BUSY_MS ? GATHER_MS : Number.POSITIVE_INFINITY),
    lane: () => 'all',
    begin: async (after) => {
      if (after !== null && !(await applied(['webhooks'], after))) {
        throw new StoreUnavailable('the read models are behind the log');
      }
      subscriptions = await loadSubscriptions(pool, after);
    },
    handle: (event) => handleAll([event]),
    handleAll,
  };
};

const sourceOf = (stored: RecordedEvent): Source[] => {
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
};

const withRecipients = async (
  deps: QueueEventsDeps,
  notifiable: readonly { readonly source: Source; readonly webhook_ids: readonly string[] }[],
): Promise<Addressed[]> => {
  const to = notifiable.at(-1)?.source.stored.position as Position;
  const sources = notifiable.map(({ source }) => source);
  const references = await allOf(deps, 'trackers', to, referencesOf, ids(sources, 'tracker_id'));
  const revealed = sources.filter(({ session }) => session === null);
  const stored = await allOf(deps, 'sessions', to, storedSessions, ids(revealed, 'session_id'));
  const sessions = notifiable.map(({ source }) => source.session ?? stored.get(source.session_id) ?? null);
  const there = sessions.filter((session) => session !== null);
  const labels = await deps.labelsOf(there);
  const customOf = new Map(there.map(({ session_id }, index) => [session_id, labels[index] ?? null]));
  return notifiable.flatMap(({ source, webhook_ids }, index): Addressed[] => {
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
};

const ids = (sources: readonly Source[], of: 'tracker_id' | 'session_id'): string[] => [
  ...new Set(sources.map((source) => source[of])),
];

/**
 * Reads the rows of these ids. They were projected before any caller could know the ids, but a crash of PostgreSQL may
 * have lost rows; then it waits for the projection and reads again.
 */
const allOf = async <Row>(
  { pool, applied }: Pick<QueueEventsDeps, 'pool' | 'applied'>,
  name: string,
  to: Position,
  read: (pool: pg.Pool, wanted: readonly string[]) => Promise<Map<string, Row>>,
  wanted: readonly string[],
): Promise<Map<string, Row>> => {
  if (wanted.length === 0) return new Map();
  const rows = await read(pool, wanted);
  if (rows.size === wanted.length) return rows;
  if (!(await applied([name], to))) throw new StoreUnavailable('the read models are behind the log');
  return read(pool, wanted);
};

const referencesOf = async (pool: pg.Pool, trackerIds: readonly string[]) => {
  const { rows } = await pool.query<{ tracker_id: string; customer_reference: string | null }>({
    name: 'tracker_references',
    text: 'select tracker_id, customer_reference from read.tracker where tracker_id = any ($1)',
    values: [trackerIds],
  });
  return new Map(rows.map((row) => [row.tracker_id, row.customer_reference]));
};

const storedSessions = async (
  pool: pg.Pool,
  sessionIds: readonly string[],
): Promise<Map<string, SealedSession>> => {
  const { rows } = await pool.query<SealedSession>({
    name: 'sessions_of_reveals',
    text: `select session_id, sealed,
                  to_char(first_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as first_seen_at
           from read.session where session_id = any ($1)`,
    values: [sessionIds],
  });
  return new Map(rows.map((row) => [row.session_id, row]));
};
