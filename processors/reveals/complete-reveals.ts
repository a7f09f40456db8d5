/** Completions by events and by runs. One file, because both take their turns by the same statements. */
import type pg from 'pg';
import { NIL, v7 as uuid } from 'uuid';
import type { CommandContext } from '../../commands/handle.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { digestOfEnrichment, ENRICHMENT_PREFIX, enrichmentEvents } from '../../domain/lookup/events.ts';
import { endpointChangeEvents, WEBHOOKS_PREFIX } from '../../domain/webhooks/events.ts';
import { type Position, type RecordedEvent, StoreUnavailable } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { DURABLY } from '../../platform/durably.ts';
import { withoutTrace } from '../../platform/spans.ts';
import type { FollowedStreams, FollowingProcessor } from '../follow.ts';
import type { EventShares } from './event-shares.ts';
import { markLeft, markReady } from './mark-ready.ts';

export interface CompleteRevealsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  /** Waits until read models reach a position; false after a time limit. */
  readonly applied: (names: readonly string[], position: Position) => Promise<boolean>;
  /**
   * Completes a reveal if possible.
   * @returns true if nothing is left to do: it is complete or gone; false: it stays pending, mostly because the partner's delivery
   *   queue is full
   */
  readonly complete: (revealId: string, context: CommandContext) => Promise<boolean>;
  readonly eventShares: EventShares;
}

export const COMPLETING: FollowedStreams = {
  name: 'complete-reveals',
  prefixes: [ENRICHMENT_PREFIX, WEBHOOKS_PREFIX],
};

const NEEDED = ['webhooks', 'reveals'];
/** Reveals that one event, or a partner's turn in a run, completes at most: about half a second's work. */
const MAX_PER_TURN = 50;
/** Waiting reveals that a turn reads to find those with a subscriber, expired ones too. */
const MAX_READ = 5_000;
/** A run ends before the next one is due, and marks what is ready for half of its time. */
const RUN_MS = 4_000;

/**
 * Completes pending reveals that an endpoint subscribes to (contract, Reveals 2): when the result arrives and when endpoints
 * change. Other reveals are completed when they are read; until then they stay pending, without a unit. An event
 * completes only the first ones, and none of a partner whose share of the time is used up, because a partner may have any number
 * of reveals waiting, may change its endpoints twice a second, and events of other partners follow; runs complete the rest.
 */
export const completeReveals = (deps: CompleteRevealsDeps): FollowingProcessor => ({
  ...COMPLETING,
  async handle(stored) {
    const enriched = readEvent(enrichmentEvents, stored)?.type === 'lookup.EnrichmentCompleted.v1';
    const partner = enriched ? null : subscriberOf(stored);
    if (!enriched && partner === null) return;
    if (!(await deps.applied(NEEDED, stored.position))) {
      // The processor retries the event after this error.
      throw new StoreUnavailable('the read models are behind the log');
    }
    if (partner === null) await completeRevealsOf(deps, digestOfEnrichment(stored.stream));
    else if (deps.eventShares.has(partner)) {
      await deps.eventShares.spend(partner, () => takeTurn(deps, partner, null));
    }
  },
});

/** Returns the partner whose endpoint may have subscribed to more events. */
const subscriberOf = (stored: RecordedEvent): string | null => {
  const event = readEvent(endpointChangeEvents, stored);
  return event?.type === 'webhooks.EndpointCreated.v1' || event?.type === 'webhooks.EndpointUpdated.v1'
    ? event.data.partner_id
    : null;
};

/** Marks the reveals that wait for an address as ready and completes the first with a subscriber. `digest`: of the address. */
export const completeRevealsOf = async (deps: CompleteRevealsDeps, digest: string): Promise<void> => {
  await markReady(deps.pool, digest);
  const { rows } = await deps.pool.query<{ reveal_id: string; partner_id: string }>({
    name: 'ready_of_address',
    text: READY_OF_ADDRESS,
    values: [digest, new Date(deps.clock.now())],
  });
  const full = new Set<string>();
  for (const { reveal_id, partner_id } of rows) {
    if (full.has(partner_id) || !deps.eventShares.has(partner_id)) continue;
    const isDone = await deps.eventShares.spend(partner_id, () => completeOne(deps, reveal_id));
    if (!isDone) full.add(partner_id);
  }
};

/**
 * Marks a reveal whose result arrived before it was recorded as waiting, and completes it if it has a subscriber. Only this
 * one: of a hundred reveals of one address each is recorded after the result.
 */
export const completeWaiting = async (
  deps: CompleteRevealsDeps,
  { reveal_id, partner_id }: { readonly reveal_id: string; readonly partner_id: string },
): Promise<void> => {
  const { rowCount } = await deps.pool.query({
    name: 'mark_waiting',
    text: MARK_ONE,
    values: [reveal_id, new Date(deps.clock.now())],
  });
  if (rowCount === 0 || !deps.eventShares.has(partner_id)) return;
  await deps.eventShares.spend(partner_id, () => completeOne(deps, reveal_id));
};

/**
 * Creates the run over ready reveals with a subscriber: partners take turns until nothing is left or the time is over. A
 * partner whose delivery queue is full waits for the next run.
 */
export const createCompletionRuns = (deps: CompleteRevealsDeps): (() => Promise<void>) => {
  /** Where each partner's next turn begins; partners that are not here begin at the first. */
  const cursors = new Map<string, string>();
  return async () => {
    const began = performance.now();
    await markLeft(deps.pool, () => performance.now() > began + RUN_MS / 2);
    const { rows } = await deps.pool.query<{ partner_id: string }>({
      name: 'partners_with_ready',
      text: PARTNERS,
    });
    let partners = rows.map(({ partner_id }) => partner_id);
    while (partners.length > 0) {
      const again: string[] = [];
      for (const partner of partners) {
        if (performance.now() > began + RUN_MS) return;
        const turn = await takeTurn(deps, partner, cursors.get(partner) ?? null);
        if (turn.next === null) cursors.delete(partner);
        else cursors.set(partner, turn.next);
        if (turn.goesOn) again.push(partner);
      }
      partners = again;
    }
  };
};

/**
 * Completes the next ready reveals of a partner. `next`: where the following turn begins; null: at the first. `goesOn`: whether
 * the partner may have a further turn in this run.
 */
const takeTurn = async (
  deps: CompleteRevealsDeps,
  partner: string,
  after: string | null,
): Promise<{ readonly goesOn: boolean; readonly next: string | null }> => {
  const { rows } = await deps.pool.query<{ reveals: string[]; last: string | null; is_last: boolean }>({
    name: 'ready_of_partner',
    text: READY_OF_PARTNER,
    values: [partner, new Date(deps.clock.now()), after ?? NIL],
  });
  const { reveals = [], last = null, is_last = true } = rows[0] ?? {};
  for (const reveal of reveals) {
    if (!(await completeOne(deps, reveal))) return { goesOn: false, next: after };
  }
  if (reveals.length < MAX_PER_TURN)
    return { goesOn: reveals.length > 0 && !is_last, next: is_last ? null : last };
  // The page may hold more reveals with a subscriber. Pages go by id, a turn by age, so the greatest id is where the turn ended.
  return { goesOn: true, next: reveals.toSorted().at(-1) ?? null };
};

/** @returns as `complete` */
const completeOne = async (
  { pool, clock, complete }: CompleteRevealsDeps,
  revealId: string,
): Promise<boolean> => {
  const id = uuid();
  const context = { correlationId: id, causationId: id, at: clock.now() };
  // A new trace, because no trace may lead from an enrichment to a reveal (architecture, rule 13).
  if (!(await withoutTrace(() => complete(revealId, context)))) return false;
  // Not ready any more, so that no run reads it; `enrich-reveals` deletes the row when it reads the completion.
  await pool.query('update work.awaited_result set ready = false where reveal_id = $1', [revealId]);
  return true;
};

/** Joins `a` with the reveals that are pending and that an endpoint subscribes to. */
const WITH_SUBSCRIBER = `
  join read.reveal r on r.reveal_id = a.reveal_id and r.completed_at is null
  where exists (
    select from read.webhook_subscription s
    where s.partner_id = a.partner_id and s.to_position is null
      and (s.tracker_id is null or s.tracker_id = r.tracker_id) and 'reveal.completed' = any (s.events))`;

const MARK_ONE = `
  with a as (
    update work.awaited_result set ready = true from ${DURABLY} where reveal_id = $1
    returning reveal_id, partner_id, expires_at)
  select from a ${WITH_SUBSCRIBER} and a.expires_at > $2`;

/** The address stands in the bound as a partner in `itemsOfTurns`: PostgreSQL may know of one address alone. */
const READY_OF_ADDRESS = `
  select a.reveal_id, a.partner_id
  from (select * from work.awaited_result w
        where w.address_digest = $1 and (w.address_digest, w.reveal_id) > ($1, '${NIL}') and w.ready
        order by w.reveal_id limit ${MAX_READ}) a
  ${WITH_SUBSCRIBER} and a.expires_at > $2 order by r.created_at, a.reveal_id limit ${MAX_PER_TURN}`;

const READY_OF_PARTNER = `
  with page as materialized (
    select reveal_id, partner_id, expires_at from work.awaited_result
    where partner_id = $1 and (partner_id, reveal_id) > ($1, $3::uuid) and ready
    order by reveal_id limit ${MAX_READ})
  select array(select reveal_id from (
           select a.reveal_id, r.created_at from page a ${WITH_SUBSCRIBER} and a.expires_at > $2
           order by a.reveal_id limit ${MAX_PER_TURN}) turn
         order by created_at, reveal_id) as reveals,
         (select reveal_id from page order by reveal_id desc limit 1) as last,
         (select count(*) from page) < ${MAX_READ} as is_last`;

/** In random order, so that runs that end early leave out different partners. */
const PARTNERS = `
  with recursive waiting as (
    (select partner_id from work.awaited_result where ready order by partner_id limit 1)
    union all
    select (select a.partner_id from work.awaited_result a
            where a.ready and a.partner_id > w.partner_id order by a.partner_id limit 1)
    from waiting w where w.partner_id is not null)
  select partner_id from waiting w where exists (
    select from read.webhook_subscription s
    where s.partner_id = w.partner_id and s.to_position is null and 'reveal.completed' = any (s.events))
  order by random()`;
