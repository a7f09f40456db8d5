import type pg from 'pg';
import { type CommandContext, ownContext } from '../../commands/handle.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { REVEAL_PREFIX, revealEvents } from '../../domain/reveals/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { SYNCHRONOUS_COMMIT } from '../../platform/postgres/transactions.ts';
import { withoutTrace } from '../../platform/telemetry/spans.ts';
import type { FollowedStreams, FollowingProcessor } from '../follow.ts';

export interface EnrichRevealsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly digest: (ip: string) => string;
  /** Returns the visitor's public address; null if it is not public or the session has expired. */
  readonly addressOf: (partnerId: string, sessionId: string) => Promise<string | null>;
  /** Requests the enrichment of an address; false if the intake or the partner's number of requests is used up. */
  readonly request: (ip: string, partnerId: string, context: CommandContext) => Promise<boolean>;
  /** Called after a reveal was recorded as waiting, because its result may have arrived before that. */
  readonly onAwaited: (
    ip: string,
    reveal: { readonly reveal_id: string; readonly partner_id: string },
  ) => Promise<void>;
}

export const ENRICHING: FollowedStreams = {
  name: 'enrich-reveals',
  prefixes: [REVEAL_PREFIX],
};

const MAX_REVEALS_PER_RUN = 100;
/** Enrichments of a partner's reveals that may be requested and unfinished (decisions, What the product defends). */
const MAX_REQUESTED_OF_PARTNER = 1_000;

/** Returns whether a partner may have one more enrichment for reveals requested and unfinished. */
export async function hasRoomForReveal(pool: pg.Pool, partnerId: string): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'reveals_requested',
    text: `select from work.awaited_result where partner_id = $1 and asked and not ready limit ${MAX_REQUESTED_OF_PARTNER}`,
    values: [partnerId],
  });
  return (rowCount ?? 0) < MAX_REQUESTED_OF_PARTNER;
}

/**
 * Requests the enrichment that a pending reveal needs. The reveal waits in a table by the digest of its address: no event
 * of a reveal names the address, and no event of an enrichment leads to a reveal (architecture, rule 13).
 */
export function enrichReveals({
  pool,
  clock,
  digest,
  addressOf,
  request,
  onAwaited,
}: EnrichRevealsDeps): FollowingProcessor {
  const handle = async (stored: RecordedEvent): Promise<void> => {
    const event = readEvent(revealEvents, stored);
    if (event === null) return;
    const { reveal_id, session_id, partner_id, expires_at } = event.data;
    if (event.type === 'reveals.RevealCompleted.v1') {
      await pool.query({
        name: 'no_longer_awaited',
        text: 'delete from work.awaited_result where reveal_id = $1',
        values: [reveal_id],
      });
      return;
    }
    const ip = await addressOf(partner_id, session_id);
    if (ip === null) return;
    // Its own ids and no trace: enrichment events hold the address in clear and must not lead to a reveal or session.
    const asked = await withoutTrace(() => request(ip, partner_id, ownContext(clock)));
    await pool.query({
      name: 'await_result',
      text: `insert into work.awaited_result (reveal_id, session_id, partner_id, address_digest, asked, expires_at)
             select $1::uuid, $2::uuid, $3::uuid, $4, $5::boolean, $6::timestamptz from ${SYNCHRONOUS_COMMIT}
             on conflict (reveal_id) do update set asked = excluded.asked`,
      values: [reveal_id, session_id, partner_id, digest(ip), asked, expires_at],
    });
    await onAwaited(ip, { reveal_id, partner_id });
  };
  return {
    ...ENRICHING,
    handle,
    handleAll: async (events) => {
      const has = (type: string): boolean => events.some((event) => event.type === type);
      // The events are of one stream: a reveal that was completed together with its request needs no enrichment.
      if (has('reveals.RevealRequested.v1') && has('reveals.RevealCompleted.v1')) return;
      for (const event of events) await handle(event);
    },
  };
}

/** The first to expire, of the partners that may request more. */
const LEFT = `
  with recursive waiting as (
    (select partner_id from work.awaited_result where not asked order by partner_id limit 1)
    union all
    select (select a.partner_id from work.awaited_result a
            where not a.asked and a.partner_id > w.partner_id order by a.partner_id limit 1)
    from waiting w where w.partner_id is not null)
  select reveal_id, session_id, own.partner_id
  from waiting w, lateral (
    select a.* from work.awaited_result a
    where not asked and a.partner_id = w.partner_id and a.expires_at > $1
      and (select count(*) from (
             select from work.awaited_result where partner_id = w.partner_id and asked and not ready
             limit ${MAX_REQUESTED_OF_PARTNER}) requested) < ${MAX_REQUESTED_OF_PARTNER}
    order by expires_at, reveal_id limit ${MAX_REVEALS_PER_RUN}) own
  order by expires_at limit ${MAX_REVEALS_PER_RUN}`;

/** Millions may expire at one moment. A run every 15 s keeps up with 300 a second. */
const MAX_FORGOTTEN_PER_RUN = 5_000;

/** Requires that the reveal's row is gone: by time alone, a fast clock would delete rows of reveals that still wait. */
const FORGET_EXPIRED = `
  delete from work.awaited_result where reveal_id = any (array(
    select oldest.reveal_id from (
      select reveal_id from work.awaited_result where expires_at <= $1
      order by expires_at limit ${MAX_FORGOTTEN_PER_RUN}) oldest
    left join lateral (
      select true as is_there from read.reveal r where r.reveal_id = oldest.reveal_id limit 1) r on true
    where is_there is null))`;

/** Retries the enrichment requests that the full intake refused, and deletes expired rows. */
export async function retryRefusedReveals({
  pool,
  clock,
  addressOf,
  request,
}: Omit<EnrichRevealsDeps, 'digest' | 'onAwaited'>): Promise<void> {
  const now = new Date(clock.now());
  await pool.query({ name: 'forget_awaited', text: FORGET_EXPIRED, values: [now] });
  const { rows } = await pool.query<{ reveal_id: string; session_id: string; partner_id: string }>({
    name: 'left_reveals',
    text: LEFT,
    values: [now],
  });
  const refused = new Set<string>();
  for (const { reveal_id, session_id, partner_id } of rows) {
    if (refused.has(partner_id)) continue;
    const ip = await addressOf(partner_id, session_id);
    if (ip !== null && !(await withoutTrace(() => request(ip, partner_id, ownContext(clock))))) {
      refused.add(partner_id);
      continue;
    }
    // Also without an address, so that no further run reads the row; it is deleted when the reveal expires.
    await pool.query('update work.awaited_result set asked = true where reveal_id = $1', [reveal_id]);
  }
}
