import { LRUCache } from 'lru-cache';
import { ownContext } from '../../commands/handle.ts';
import { type EnrichmentStreams, handleEnrichment } from '../../commands/lookup/enrichment-streams.ts';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { RESULT_KEPT_DAYS } from '../../domain/lookup/result.ts';
import { type Position, WrongExpectedRevision } from '../../event-store/port.ts';
import { runSoon } from '../../platform/clock/waiting.ts';
import { forgetInBatches } from '../../platform/postgres/transactions.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';
import type { ProcessorDeps } from '../deps.ts';

const FLUSH_MS = 2_000;
const MAX_ADDRESSES_REMEMBERED = 100_000;

/** On which day each saved result was last asked for: written once a day and process, for it is forgotten by that. */
export function createLookupUses({ pool, clock }: Pick<ProcessorDeps, 'pool' | 'clock'>) {
  /** The day that is written, or is about to be. */
  const noted = new LRUCache<string, string>({ max: MAX_ADDRESSES_REMEMBERED });
  const waiting = new Set<string>();

  const flush = async (): Promise<void> => {
    if (waiting.size === 0) return;
    const ips = [...waiting];
    waiting.clear();
    await pool
      .query(
        // A day that lies ahead was a wrong clock's.
        `insert into work.lookup_use as known (ip, asked_on) select ip, $2::date from unnest($1::text[]) as a (ip) order by ip
         on conflict (ip) do update set asked_on = excluded.asked_on
           where known.asked_on < excluded.asked_on or known.asked_on > excluded.asked_on + 1`,
        [ips, utcDay(clock.now())],
      )
      // It is written when the result is next asked for.
      .catch(() => {
        for (const ip of ips) noted.delete(ip);
      });
  };
  const flushing = runSoon(flush, FLUSH_MS);

  return {
    /** Notes that the saved result of this canonical address was asked for today. */
    note: (ip: string): void => {
      const today = utcDay(clock.now());
      if (noted.get(ip) === today) return;
      noted.set(ip, today);
      waiting.add(ip);
      flushing.soon();
    },
    /** Writes at once what was noted since the last write. */
    flush,
    close: async (): Promise<void> => {
      flushing.cancel();
      await flush();
    },
  };
}
export type LookupUses = ReturnType<typeof createLookupUses>;

interface ForgetResultsOptions extends EnrichmentStreams, ProcessorDeps {
  readonly consumers: Consumers;
  /** Waits until the read model of lookups reaches a position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** Results that a statement reads; it must end in time however many are kept and not due. */
const PAGE = 5_000;

/**
 * Forgets results that no partner has asked for in 400 days and deletes their streams. The next run completes an
 * interrupted one. `forget` deletes the row of a deleted stream from the read model.
 */
export async function forgetResults(
  options: ForgetResultsOptions,
  forget: (stream: string) => Promise<void>,
): Promise<void> {
  const { store, pool, clock, projected } = options;
  // Until the previous run's events are projected, its results still appear as due.
  if (!(await projected(await store.head()))) return;
  const lastDay = utcDay(clock.now() - RESULT_KEPT_DAYS * DAY);
  const last = await forgetUnasked(options, lastDay);
  await forgetInBatches(pool, FORGET_USES, lastDay);
  if (await projected(last)) await deleteForgotten(options, forget);
}

const FORGET_USES = `
  delete from work.lookup_use where ip = any (array(
    select ip from work.lookup_use where asked_on <= $1::date order by asked_on limit $2))`;

interface UnaskedPage {
  /** Addresses of the results to forget. */
  readonly due: string[];
  readonly last_ip: string | null;
  readonly results: number;
}

const UNASKED = `
  with page as (
    select ip, enriched_at < ($2::date + 1)::timestamp at time zone 'UTC' as is_old
    from read.saved_lookup where ip > $1 order by ip limit ${PAGE})
  select array(select p.ip from page p left join work.lookup_use u on u.ip = p.ip
               where p.is_old and coalesce(u.asked_on <= $2::date, true)
                 and not exists (select from read.enrichment_work w where w.ip = p.ip)
               order by p.ip) as due,
         max(page.ip) as last_ip, count(*)::int as results
  from page`;

/** @returns the position of the last event; null if no result was forgotten */
async function forgetUnasked(options: ForgetResultsOptions, lastDay: string): Promise<Position | null> {
  const { store, pool, clock, signal } = options;
  let last: Position | null = null;
  for (let after = ''; !signal.aborted; ) {
    const { rows } = await pool.query<UnaskedPage>({
      name: 'unasked_results',
      text: UNASKED,
      values: [after, lastDay],
    });
    const { due = [], last_ip = null, results = 0 } = rows[0] ?? {};
    for (const ip of due) {
      if (signal.aborted) break;
      const context = ownContext(clock);
      const { events, position } = await handleEnrichment(
        options,
        ip,
        { type: 'Forget', at: context.at },
        context,
      );
      if (events.length > 0) last = position ?? (await store.head());
    }
    if (last_ip === null || results < PAGE) break;
    after = last_ip;
  }
  return last;
}

/** Deletes the streams of forgotten results after all consumers have passed their last event. */
async function deleteForgotten(
  { store, pool, consumers, signal }: ForgetResultsOptions,
  forget: (stream: string) => Promise<void>,
): Promise<void> {
  const passed = await createConsumerProgress(pool, consumers).passed();
  if (passed === null) return;
  for (let after = ''; !signal.aborted; ) {
    const { rows } = await pool.query<{ stream: string; last_revision: number; is_passed: boolean }>({
      name: 'forgotten_streams',
      text: `select stream, last_revision, last_position <= $1 as is_passed from read.forgotten_lookup
             where stream > $2 order by stream limit ${PAGE}`,
      values: [passed, after],
    });
    for (const { stream, last_revision, is_passed } of rows) {
      if (signal.aborted) return;
      if (!is_passed) continue;
      try {
        await store.expire(stream, last_revision);
      } catch (error) {
        // An event that no reader sees yet may follow; the next run retries.
        if (error instanceof WrongExpectedRevision) continue;
        throw error;
      }
      await forget(stream);
    }
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.stream ?? after;
  }
}
