import type pg from 'pg';
import { NIL } from 'uuid';
import { ownContext } from '../../commands/handle.ts';
import { forgetEndpoints } from '../../commands/webhooks/manage-endpoints.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { endpointsStream } from '../../domain/webhooks/endpoints.ts';
import { endpointEvents, WEBHOOK_HISTORY_MS } from '../../domain/webhooks/events.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import { inPages } from '../../platform/postgres/transactions.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';
import type { ProcessorDeps } from '../deps.ts';
import { forEachIsolated } from '../for-each.ts';

export interface ForgetEndpointsOptions extends ProcessorDeps {
  readonly consumers: Consumers;
}

/**
 * Forgets endpoints that were deleted 90 days ago, and truncates their partners' streams before the snapshot that leaves
 * them out, after all consumers have passed it. The next run completes an interrupted one.
 * @param forgetSubscriptions deletes subscriptions from the read model that ended before a position
 */
export async function forgetDeletedEndpoints(
  options: ForgetEndpointsOptions,
  forgetSubscriptions: (before: Position) => Promise<void>,
): Promise<void> {
  const { store, pool, clock, consumers } = options;
  const { rows } = await pool.query<{ partner_id: string }>(
    'select distinct partner_id from read.webhook_endpoint where deleted_at <= $1',
    [new Date(clock.now() - WEBHOOK_HISTORY_MS)],
  );
  const forgotten = forEachIsolated(rows, async ({ partner_id }) => {
    await forgetEndpoints(store, partner_id, ownContext(clock, partner_id));
  });
  await Promise.allSettled([forgotten]);
  const progress = createConsumerProgress(pool, consumers);
  await progress.waitFor(await store.head(), new AbortController().signal);
  const passed = await progress.passed();
  if (passed !== null) {
    await truncateBehindSnapshots(options, passed);
    await forgetSubscriptions(passed);
  }
  await forgetSlots(pool);
  await forgotten;
}

const SLOTS = 2_500;

/** Each slot's endpoint is found by its key: a script may have made and deleted millions of endpoints in 90 days. */
const FORGET_SLOTS = `
  with page as materialized (
         select webhook_id from work.webhook_slot where webhook_id > $1::uuid order by webhook_id limit ${SLOTS}),
       gone as (
         delete from work.webhook_slot where webhook_id = any (array(
           select p.webhook_id from page p
           left join lateral (
             select true as is_there from read.webhook_endpoint e where e.webhook_id = p.webhook_id limit 1) e on true
           where is_there is null)))
  select webhook_id as last from page order by webhook_id desc limit 1`;

/** Deletes the slots of forgotten endpoints: what their attempts used of their limits (`claims.sql`). */
const forgetSlots = (pool: pg.Pool): Promise<void> =>
  inPages(pool, { name: 'forget_slots', text: FORGET_SLOTS }, NIL);

async function truncateBehindSnapshots(
  { store, pool, clock }: ForgetEndpointsOptions,
  passed: Position,
): Promise<void> {
  const { rows } = await pool.query<{ partner_id: string }>('select partner_id from read.partner');
  await forEachIsolated(rows, async ({ partner_id }) => {
    const stream = endpointsStream(partner_id);
    const snapshot = await newestSnapshot(store, stream, passed, clock.now() - WEBHOOK_HISTORY_MS);
    if (snapshot !== null) await store.truncateBefore(stream, snapshot);
  });
}

/**
 * Finds the newest snapshot that all consumers have passed and that holds every endpoint deleted after `before`
 * (milliseconds): with very many recent deletions, a snapshot holds only the last of them.
 * @returns its revision; null if there is none or it is the stream's first event
 */
async function newestSnapshot(
  store: EventStore,
  stream: string,
  passed: Position,
  before: number,
): Promise<number | null> {
  const deletedLately = new Set<string>();
  let snapshot: number | null = null;
  let first: number | null = null;
  for await (const stored of throttled(store.readStream(stream))) {
    first ??= stored.revision;
    if (stored.position > passed) break;
    const event = readEvent(endpointEvents, stored);
    if (event?.type === 'webhooks.EndpointDeleted.v1' && Date.parse(event.data.deleted_at) > before) {
      deletedLately.add(event.data.webhook_id);
    }
    if (event?.type === 'webhooks.EndpointsSnapshotted.v1') {
      const held = new Set(event.data.endpoints.map(({ webhook_id }) => webhook_id));
      if ([...deletedLately].every((id) => held.has(id))) snapshot = stored.revision;
    }
  }
  return snapshot === first ? null : snapshot;
}
