/** Delivery workers with the test's receiver, over a real store, read model and claims. */
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { toNewEvents } from '../../commands/handle.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { deliveryEvents, endpointChangeEvents, resultOf } from '../../domain/webhooks/events.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { Listener } from '../../platform/postgres/notifications.ts';
import type { Target } from '../../processors/webhooks/delivery/attempt.ts';
import { type DeliverOptions, startDeliveries } from '../../processors/webhooks/delivery/deliver.ts';
import type { SendResult } from '../../processors/webhooks/delivery/sender.ts';
import { DELIVERIES_CHANNEL, deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import { aDelivery, queued, type TestDelivery, type TestEndpoint } from './deliveries.ts';
import type { TestStack } from './test-stack.ts';

export const TAKEN: SendResult = { ...resultOf({ http_status: 200 }), retry_after_ms: null };
export const TIMED_OUT: SendResult = { ...resultOf({ error: 'timeout' }), retry_after_ms: null };

/** The receiver's result for an event; by default it accepts it. */
export type Receive = (eventId: string, webhookId: string) => SendResult | Promise<SendResult>;

/** Runs in real time and can be advanced; the workers poll at once then. */
export interface RunningClock extends Clock {
  skip(ms: number): void;
}

const runningClock = (from: number, onSkip: () => void): RunningClock => {
  const begun = performance.now();
  let ahead = 0;
  return {
    now: () => Math.round(from + ahead + performance.now() - begun),
    skip: (ms) => {
      ahead += ms;
      onSkip();
    },
  };
};

/** A worker's query for due deliveries of one endpoint. */
export interface Poll {
  readonly webhookId: string;
  /** Milliseconds: `performance.now()` when the query was sent. */
  readonly sentAt: number;
  /** The time of its claims, by the workers' clock. */
  readonly at: number;
  readonly claimed: number;
}

/** A pool that records every query for due deliveries once it is answered. */
const recordingPolls = (pool: pg.Pool, polls: Poll[]): pg.Pool => {
  const query = async (config: pg.QueryConfig) => {
    const sentAt = performance.now();
    const result = await pool.query(config);
    if (config.name === 'claim_attempts') {
      const at = Number(config.values?.[8]);
      polls.push(
        ...result.rows.map(({ webhook_id, claims }) => ({
          webhookId: webhook_id,
          sentAt,
          at,
          claimed: claims.length,
        })),
      );
    }
    return result;
  };
  return Object.assign(Object.create(pool), { query });
};

export interface Deliverer {
  readonly clock: RunningClock;
  /** The polls of all workers that have been answered. */
  polls(of: TestEndpoint): Poll[];
  append(...events: { type: string; data: object }[]): Promise<void>;
  /** Queues this number of deliveries for an endpoint. */
  queue(of: TestEndpoint, count: number): Promise<TestDelivery[]>;
  start(receive: Receive, over?: Partial<DeliverOptions>): { stop(): Promise<void> };
  row(of: TestDelivery): Promise<Record<string, unknown>>;
  /** The number of the endpoint's deliveries by state. */
  states(of: TestEndpoint): Promise<Record<string, number>>;
}

/** Of the events that queue a delivery. What is sent is made by the worker's `bodyOf`. */
const STORE_BODIES = `
  insert into read.webhook_payload
    (event_id, partner_id, type, day, sealed, bytes, created_at, expires_at, last_revision, last_position)
  select event_id, partner_id, 'session.created', created_at, '', 0, created_at, payload_expires_at, 0, 0
  from json_to_recordset($1) as e (event_id text, partner_id uuid, created_at timestamptz, payload_expires_at timestamptz)
  where payload_expires_at is not null
  on conflict do nothing`;
const context = (clock: Clock) => ({ correlationId: 'c', causationId: 'c', at: clock.now() });

/** Creates the workers' clock; the stack must project `deliveries`. */
export const openDeliverer = (stack: TestStack): Deliverer => {
  const running = new Set<ReturnType<typeof startDeliveries>>();
  const clock = runningClock(stack.clock.now(), () => {
    for (const worker of running) worker.onNotification('');
  });
  const polls: Poll[] = [];
  const pool = recordingPolls(stack.pool, polls);
  const append = async (...events: { type: string; data: object }[]): Promise<void> => {
    await stack.rows(STORE_BODIES, [JSON.stringify(events.map(({ data }) => data))]);
    const made = toNewEvents({ ...endpointChangeEvents, ...deliveryEvents }, events, context(clock));
    await stack.store.append(`deliveries-${isoTime(clock.now()).slice(0, 10)}`, 'any', made);
    await stack.caughtUp([deliveries]);
  };
  return {
    clock,
    polls: ({ webhook_id }) => polls.filter(({ webhookId }) => webhookId === webhook_id),
    append,
    queue: async (of, count) => {
      const made = Array.from({ length: count }, () => aDelivery(of));
      await append(...made.map((d) => queued(d, clock.now())));
      return made;
    },
    start: (receive, over = {}) => {
      const worker = startDeliveries({
        store: stack.store,
        pool,
        clock,
        log: stack.log,
        projections: ['deliveries'],
        sources: [],
        projected: (position) => stack.progress.reached(['deliveries'], position, 5_000, 'patient'),
        targetsOf: async (ids) =>
          new Map(ids.map((id): [string, Target] => [id, { url: id, secrets: [Buffer.from('s')] }])),
        bodyOf: async (eventId) => Buffer.from(eventId),
        sign: (_secrets, eventId) => ({ 'webhook-id': eventId }),
        send: async ({ url, headers }) => {
          await setTimeout(0);
          return receive(headers['webhook-id'] ?? '', url);
        },
        concurrency: 32,
        startsPerSecond: 100_000,
        retryBaseMs: 15_000,
        random: () => 0.5,
        endpointsPerPartner: 5,
        onStart: () => undefined,
        onOutcome: () => undefined,
        onWatched: () => undefined,
        ...over,
      });
      running.add(worker);
      const listener = new Listener({
        url: stack.url,
        channels: [DELIVERIES_CHANNEL],
        onNotification: (_channel, payload) => worker.onNotification(payload),
        // Earlier notifications were missed, so the worker polls.
        ready: () => worker.onNotification(''),
      });
      listener.ensure();
      return {
        stop: async () => {
          running.delete(worker);
          await listener.close();
          await worker.stop();
        },
      };
    },
    row: async ({ delivery_id }) => {
      const [row] = await stack.rows('select * from read.webhook_delivery where delivery_id = $1', [
        delivery_id,
      ]);
      if (!row) throw new Error('no such delivery');
      return row;
    },
    states: async ({ webhook_id }) => {
      const rows = await stack.rows(
        `select state, sum(deliveries)::int as n from read.webhook_total
         where webhook_id = $1 and deliveries > 0 group by state order by state`,
        [webhook_id],
      );
      return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
    },
  };
};
