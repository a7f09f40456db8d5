import type pg from 'pg';
import { v7 as uuid } from 'uuid';
import type { CommandContext } from '../../commands/handle.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { digestOfEnrichment, ENRICHMENT_PREFIX, enrichmentEvents } from '../../domain/lookup/events.ts';
import { WEBHOOKS_PREFIX, webhookEvents } from '../../domain/webhooks/events.ts';
import { type Position, type RecordedEvent, StoreUnavailable } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { DURABLY } from '../../platform/durably.ts';
import { withoutTrace } from '../../platform/spans.ts';
import type { FollowingProcessor } from '../follow.ts';

export interface CompleteRevealsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  /** Waits until read models reach a position; false after a time limit. */
  readonly applied: (names: readonly string[], position: Position) => Promise<boolean>;
  /** Completes a reveal if possible. @returns whether it is no longer pending */
  readonly complete: (revealId: string, context: CommandContext) => Promise<boolean>;
}

export const COMPLETING_PROCESSOR = 'complete-reveals';

const BATCH = 200;
const NEEDED = ['webhooks', 'reveals'];

/**
 * Completes pending reveals that an endpoint subscribes to (contract, Reveals 2): when the result arrives
 * and when endpoints change. Other reveals are completed when they are read.
 */
export const completeReveals = (deps: CompleteRevealsDeps): FollowingProcessor => ({
  name: COMPLETING_PROCESSOR,
  prefixes: [ENRICHMENT_PREFIX, WEBHOOKS_PREFIX],
  async handle(stored) {
    const enriched = readEvent(enrichmentEvents, stored)?.type === 'lookup.EnrichmentCompleted.v1';
    const partner = enriched ? null : subscriberOf(stored);
    if (!enriched && partner === null) return;
    if (!(await deps.applied(NEEDED, stored.position))) {
      throw new StoreUnavailable('the read models are behind the log');
    }
    if (enriched) await completeRevealsOf(deps, digestOfEnrichment(stored.stream));
    else await completeReady(deps, partner);
  },
});

/** Returns the partner whose endpoint may have subscribed to more events. */
const subscriberOf = (stored: RecordedEvent): string | null => {
  const event = readEvent(webhookEvents, stored);
  return event?.type === 'webhooks.EndpointCreated.v1' || event?.type === 'webhooks.EndpointUpdated.v1'
    ? event.data.partner_id
    : null;
};

/** Marks the reveals that wait for an address as ready and completes those with a subscriber. `digest`: of the address. */
export const completeRevealsOf = async (deps: CompleteRevealsDeps, digest: string): Promise<void> => {
  const { rows } = await deps.pool.query<{ reveal_id: string }>({
    name: 'result_is_there',
    text: `update work.awaited_result set ready = true from ${DURABLY} where address_digest = $1
           returning reveal_id`,
    values: [digest],
  });
  const reveals = rows.map(({ reveal_id }) => reveal_id);
  if (reveals.length > 0) await completeReady(deps, null, reveals);
};

/**
 * Completes ready reveals that have a subscriber, of one partner or of all, oldest first. When a partner's delivery queue
 * is full, its other reveals wait for the next run; other partners are not affected.
 */
export const completeReady = async (
  { pool, clock, complete }: CompleteRevealsDeps,
  partner: string | null,
  reveals: readonly string[] | null = null,
): Promise<void> => {
  const full = new Set<string>();
  for (let after = FIRST; ; ) {
    const { rows } = await pool.query<{ reveal_id: string; partner_id: string; cursor: string }>({
      name: 'ready_reveals',
      text: READY,
      values: [new Date(clock.now()), partner, reveals, [...full], after.cursor, after.reveal_id],
    });
    for (const { reveal_id, partner_id } of rows) {
      if (full.has(partner_id)) continue;
      const id = uuid();
      const context = { correlationId: id, causationId: id, at: clock.now() };
      // A new trace, because no trace may lead from an enrichment to a reveal (architecture, rule 13).
      if (await withoutTrace(() => complete(reveal_id, context))) {
        await pool.query('update work.awaited_result set ready = false where reveal_id = $1', [reveal_id]);
      } else full.add(partner_id);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return;
    after = last;
  }
};

const FIRST = { cursor: '-infinity', reveal_id: '00000000-0000-0000-0000-000000000000' };

const READY = `
  select a.reveal_id, a.partner_id, r.created_at::text as cursor
  from work.awaited_result a join read.reveal r on r.reveal_id = a.reveal_id
  where a.ready and a.expires_at > $1 and r.completed_at is null
    and ($2::uuid is null or a.partner_id = $2) and ($3::uuid[] is null or a.reveal_id = any ($3))
    and a.partner_id <> all ($4::uuid[]) and (r.created_at, a.reveal_id) > ($5::timestamptz, $6::uuid)
    and exists (
      select from read.webhook_subscription s
      where s.partner_id = a.partner_id and s.to_position is null
        and (s.tracker_id is null or s.tracker_id = r.tracker_id) and 'reveal.completed' = any (s.events))
  order by r.created_at, a.reveal_id limit ${BATCH}`;
