import type pg from 'pg';
import { readEvent } from '../../domain/kernel/events.ts';
import {
  endpointEvents,
  type SnapshottedEndpoint,
  type Subscribable,
  WEBHOOKS_PREFIX,
} from '../../domain/webhooks/events.ts';
import type { Position, RecordedEvent } from '../../event-store/port.ts';

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
export interface Subscriptions {
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
