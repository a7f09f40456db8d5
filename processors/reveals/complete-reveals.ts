/** Completes pending reveals that an endpoint subscribes to: by events, and in runs for what events leave. */
import type pg from 'pg';
import { NIL } from 'uuid';
import { type CommandContext, ownContext } from '../../commands/handle.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { digestOfEnrichment, ENRICHMENT_PREFIX, enrichmentEvents } from '../../domain/lookup/events.ts';
import { PARTNER_PREFIX, partnerEvents } from '../../domain/partners/events.ts';
import { endpointChangeEvents, WEBHOOKS_PREFIX } from '../../domain/webhooks/events.ts';
import { type Position, type RecordedEvent, StoreUnavailable } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { SYNCHRONOUS_COMMIT } from '../../platform/postgres/transactions.ts';
import { withoutTrace } from '../../platform/telemetry/spans.ts';
import type { FollowedStreams, FollowingProcessor } from '../follow.ts';
import { inParallel } from '../for-each.ts';

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
}

export const COMPLETING: FollowedStreams = {
  name: 'complete-reveals',
  prefixes: [ENRICHMENT_PREFIX, WEBHOOKS_PREFIX, PARTNER_PREFIX],
};

const NEEDED = ['webhooks', 'reveals', 'partners'];
/** Completions of one partner under way in a process (decisions, What the product defends). */
const MAX_COMPLETIONS_OF_PARTNER = 100;
/** Waiting reveals that are read to find those with a subscriber, expired ones too. */
const MAX_READ = 5_000;
/** A run ends before the next one is due. */
const RUN_MS = 4_000;
/** Reveals that are marked as ready at a time. */
const MARK_PAGE = 5_000;

/**
 * Completes pending reveals that an endpoint subscribes to (contract, Reveals 2): when the result arrives, when endpoints
 * change and when the partner is resumed. Other reveals are completed when they are read; until then they stay pending, without a unit. An event completes at
 * most a hundred of each partner, because events of other partners follow; runs complete the rest.
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
    else await completeNext(deps, partner, null);
  },
});

/** Returns the partner whose endpoint may have subscribed to more events, or whose reveals no longer wait. */
function subscriberOf(stored: RecordedEvent): string | null {
  const event = readEvent({ ...endpointChangeEvents, ...partnerEvents }, stored);
  switch (event?.type) {
    case 'webhooks.EndpointCreated.v1':
    case 'webhooks.EndpointUpdated.v1':
    case 'partners.PartnerResumed.v1':
      return event.data.partner_id;
    default:
      return null;
  }
}

/** Marks the reveals that wait for an address as ready and completes those with a subscriber. `digest`: of the address. */
export async function completeRevealsOf(deps: CompleteRevealsDeps, digest: string): Promise<void> {
  await markReady(deps.pool, digest);
  const { rows } = await deps.pool.query<{ reveal_id: string; partner_id: string }>({
    name: 'ready_of_address',
    text: READY_OF_ADDRESS,
    values: [digest, new Date(deps.clock.now())],
  });
  const ofPartners = Map.groupBy(rows, ({ partner_id }) => partner_id);
  await Promise.all([...ofPartners.values()].map((reveals) => completeInOrder(deps, reveals)));
}

/** Marks the reveals that wait for an address, of which a partner may have millions. */
async function markReady(pool: pg.Pool, digest: string): Promise<void> {
  let after: string | null = NIL;
  while (after !== null) {
    const page: pg.QueryResult<{ last: string | null; marked: number }> = await pool.query({
      name: 'result_is_there',
      text: MARK,
      values: [digest, after],
    });
    const [row] = page.rows;
    after = row === undefined || row.marked < MARK_PAGE ? null : row.last;
  }
}

/** @returns false where one stays pending, mostly because the partner's delivery queue is full: the others wait too */
async function completeInOrder(
  deps: CompleteRevealsDeps,
  reveals: readonly { readonly reveal_id: string }[],
): Promise<boolean> {
  for (const { reveal_id } of reveals) {
    if (!(await completeOne(deps, reveal_id))) return false;
  }
  return true;
}

/**
 * Marks a reveal whose result arrived before it was recorded as waiting, and completes it if it has a subscriber. Only this
 * one: of a hundred reveals of one address each is recorded after the result.
 */
export async function completeWaiting(deps: CompleteRevealsDeps, revealId: string): Promise<void> {
  const { rowCount } = await deps.pool.query({
    name: 'mark_waiting',
    text: MARK_ONE,
    values: [revealId, new Date(deps.clock.now())],
  });
  if (rowCount !== 0) await completeOne(deps, revealId);
}

/**
 * Creates the run over ready reveals with a subscriber, the partners side by side, until nothing is left or the time is over. A
 * partner whose delivery queue is full waits for the next run.
 */
export function createCompletionRuns(deps: CompleteRevealsDeps): () => Promise<void> {
  /** Where each partner's next page begins; partners that are not here begin at the first. */
  const cursors = new Map<string, string>();

  async function completePage(partner: string): Promise<boolean> {
    const page = await completeNext(deps, partner, cursors.get(partner) ?? null);
    if (page.next === null) cursors.delete(partner);
    else cursors.set(partner, page.next);
    return page.goesOn;
  }

  return async () => {
    const until = performance.now() + RUN_MS;
    const { rows } = await deps.pool.query<{ partner_id: string }>({
      name: 'partners_with_ready',
      text: PARTNERS,
    });
    for (let waiting = rows.map((row) => row.partner_id); waiting.length > 0; ) {
      const again: string[] = [];
      await inParallel(waiting, async (partner) => {
        if (performance.now() < until && (await completePage(partner))) again.push(partner);
      });
      waiting = again;
    }
  };
}

/**
 * Completes the next ready reveals of a partner. `next`: where the following page begins; null: at the first. `goesOn`: whether
 * it may hold more.
 */
async function completeNext(
  deps: CompleteRevealsDeps,
  partner: string,
  after: string | null,
): Promise<{ readonly goesOn: boolean; readonly next: string | null }> {
  const { rows } = await deps.pool.query<{ reveals: string[]; last: string | null; is_last: boolean }>({
    name: 'ready_of_partner',
    text: READY_OF_PARTNER,
    values: [partner, new Date(deps.clock.now()), after ?? NIL],
  });
  const { reveals = [], last = null, is_last = true } = rows[0] ?? {};
  const isDone = await completeInOrder(
    deps,
    reveals.map((reveal_id) => ({ reveal_id })),
  );
  if (!isDone) return { goesOn: false, next: after };
  if (reveals.length < MAX_COMPLETIONS_OF_PARTNER)
    return { goesOn: reveals.length > 0 && !is_last, next: is_last ? null : last };
  // The page may hold more reveals with a subscriber. Pages go by id, completions by age, so the greatest id is where it ended.
  return { goesOn: true, next: reveals.toSorted().at(-1) ?? null };
}

/** @returns as `complete` */
async function completeOne(
  { pool, clock, complete }: CompleteRevealsDeps,
  revealId: string,
): Promise<boolean> {
  const context = ownContext(clock);
  // A new trace, because no trace may lead from an enrichment to a reveal (architecture, rule 13).
  if (!(await withoutTrace(() => complete(revealId, context)))) return false;
  // Not ready any more, so that no run reads it; `enrich-reveals` deletes the row when it reads the completion.
  await pool.query('update work.awaited_result set ready = false where reveal_id = $1', [revealId]);
  return true;
}

/** While a partner is suspended, its reveals wait. Of the partner of `a`. */
const IS_ACTIVE =
  'not exists (select from read.partner p where p.partner_id = a.partner_id and p.suspended_at is not null)';

/** Joins `a` with the reveals that are pending and that an endpoint subscribes to, without those of suspended partners. */
const WITH_SUBSCRIBER = `
  join read.reveal r on r.reveal_id = a.reveal_id and r.completed_at is null
  where exists (
    select from read.webhook_subscription s
    where s.partner_id = a.partner_id and s.to_position is null
      and (s.tracker_id is null or s.tracker_id = r.tracker_id) and 'reveal.completed' = any (s.events))
    and ${IS_ACTIVE}`;

const MARK_ONE = `
  with a as (
    update work.awaited_result set ready = true from ${SYNCHRONOUS_COMMIT} where reveal_id = $1
    returning reveal_id, partner_id, expires_at)
  select from a ${WITH_SUBSCRIBER} and a.expires_at > $2`;

const MARK = `
  with page as materialized (
    select reveal_id from work.awaited_result
    where address_digest = $1 and (address_digest, reveal_id) > ($1, $2::uuid) and not ready
    order by reveal_id limit ${MARK_PAGE}),
  marked as (
    update work.awaited_result set ready = true from ${SYNCHRONOUS_COMMIT} where reveal_id = any (array(select reveal_id from page)))
  select (select reveal_id from page order by reveal_id desc limit 1) as last, (select count(*)::int from page) as marked`;

/** The address stands in the bound too, because PostgreSQL may know of one address alone. */
const READY_OF_ADDRESS = `
  select a.reveal_id, a.partner_id
  from (select * from work.awaited_result w
        where w.address_digest = $1 and (w.address_digest, w.reveal_id) > ($1, '${NIL}') and w.ready
        order by w.reveal_id limit ${MAX_READ}) a
  ${WITH_SUBSCRIBER} and a.expires_at > $2 order by r.created_at, a.reveal_id limit ${MAX_COMPLETIONS_OF_PARTNER}`;

const READY_OF_PARTNER = `
  with page as materialized (
    select reveal_id, partner_id, expires_at from work.awaited_result
    where partner_id = $1 and (partner_id, reveal_id) > ($1, $3::uuid) and ready
    order by reveal_id limit ${MAX_READ})
  select array(select reveal_id from (
           select a.reveal_id, r.created_at from page a ${WITH_SUBSCRIBER} and a.expires_at > $2
           order by a.reveal_id limit ${MAX_COMPLETIONS_OF_PARTNER}) turn
         order by created_at, reveal_id) as reveals,
         (select reveal_id from page order by reveal_id desc limit 1) as last,
         (select count(*) from page) < ${MAX_READ} as is_last`;

/** Active partners with ready reveals and a subscriber, in random order: runs that end early leave out different ones. */
const PARTNERS = `
  with recursive waiting as (
    (select partner_id from work.awaited_result where ready order by partner_id limit 1)
    union all
    select (select a.partner_id from work.awaited_result a
            where a.ready and a.partner_id > w.partner_id order by a.partner_id limit 1)
    from waiting w where w.partner_id is not null)
  select partner_id from waiting a where ${IS_ACTIVE} and exists (
    select from read.webhook_subscription s
    where s.partner_id = a.partner_id and s.to_position is null and 'reveal.completed' = any (s.events))
  order by random()`;
