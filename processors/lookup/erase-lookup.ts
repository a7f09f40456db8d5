/** Erases what is known of an address: its saved result, the work under way, and which partners had asked for it. */
import { ownContext } from '../../commands/handle.ts';
import { handleEnrichment, type LookupStreams } from '../../commands/lookup/enrichment-streams.ts';
import { ENRICHMENT_PREFIX, enrichmentStream, nextEnrichmentStream } from '../../domain/lookup/events.ts';
import { intakeStream } from '../../domain/lookup/intake.ts';
import type { Position } from '../../event-store/port.ts';
import { createConsumerProgress } from '../consumers.ts';
import type { ErasureDeps } from '../erasure-deps.ts';
import { ConsumersBehind, deleteStream } from '../retire-streams.ts';

export interface EraseLookupDeps extends ErasureDeps, LookupStreams {
  /** Drops the row of a deleted stream from the read model. */
  readonly forgetStream: (stream: string) => Promise<void>;
}

/** What the read models say of an address. */
export interface FoundLookup {
  /** 0 or 1. */
  readonly saved_results: number;
  /** Enrichments under way: 0 or 1. */
  readonly work: number;
  /** Reservations of partners, by partner. */
  readonly reservations: ReadonlyMap<string, readonly string[]>;
}

/** Finds what is known of a canonical address. */
export async function findLookup({ pool }: Pick<ErasureDeps, 'pool'>, ip: string): Promise<FoundLookup> {
  const { rows } = await pool.query<{ saved: number; work: number }>(
    `select (select count(*)::int from read.saved_lookup where ip = $1) as saved,
            (select count(*)::int from read.enrichment_work where ip = $1) as work`,
    [ip],
  );
  // By partner, as the index has them.
  const made = await pool.query<{ partner_id: string; ids: string[] }>(
    `select p.partner_id, array(select r.reservation_id::text from read.reservation r
                                where r.partner_id = p.partner_id and r.ip = $1) as ids
     from read.partner p`,
    [ip],
  );
  const { saved = 0, work = 0 } = rows[0] ?? {};
  const reservations = new Map(
    made.rows.flatMap(({ partner_id, ids }) => (ids.length > 0 ? [[partner_id, ids] as const] : [])),
  );
  return { saved_results: saved, work, reservations };
}

const PROJECTED_MS = 30_000;

/**
 * Erases what is known of a canonical address. Work under way ends, and partners' reservations for it with it. A repeat completes an
 * interrupted run.
 * @returns what was found
 * @throws ConsumersBehind if a consumer of the log does not get on, and the port's errors
 */
export async function eraseLookup(deps: EraseLookupDeps, ip: string): Promise<FoundLookup> {
  const { store, pool, clock, intake } = deps;
  await projected(deps, await store.head());
  const found = await findLookup(deps, ip);
  const context = ownContext(clock);
  await handleEnrichment(deps, ip, { type: 'Erase', at: context.at }, context);
  await projected(deps, await store.head());
  // The ended work has made its reservations known that were under way.
  const { reservations } = await findLookup(deps, ip);
  for (const [partner_id, ids] of reservations) {
    const command = { type: 'Erase', partner_id, reservation_ids: ids, at: clock.now() } as const;
    await intake.submitCommand(
      intakeStream(partner_id),
      command,
      { ...context, partnerId: partner_id },
      () => null,
    );
  }
  await deleteEnded(deps, ip);
  for (const forget of FORGET) await pool.query(forget, [ip]);
  await projected(deps, await store.head());
  return found;
}

async function projected({ progress }: ErasureDeps, position: Position | null): Promise<void> {
  if (!(await progress.reached(['lookups', 'profiles'], position, PROJECTED_MS)))
    throw new ConsumersBehind('the read models lookups and profiles are behind the log');
}

/** Rows by address of processors. */
const FORGET = [
  'delete from work.lookup_use where ip = $1',
  'delete from work.enrichment_truncation where ip = $1',
  'delete from work.claim where item = $1',
];

/** Deletes the address's streams that have ended. A newer one holds what somebody has asked for since. */
async function deleteEnded(deps: EraseLookupDeps, ip: string): Promise<void> {
  const { store, digest, pool, consumersOf, forgetStream } = deps;
  const consumerProgress = createConsumerProgress(pool, consumersOf(ENRICHMENT_PREFIX));
  for (let stream = enrichmentStream(digest(ip)); ; stream = nextEnrichmentStream(stream)) {
    let isExpired = false;
    let lastType: string | null = null;
    const onExpired = (): void => {
      isExpired = true;
    };
    for await (const { type } of store.readStream(stream, { onExpired })) lastType = type;
    if (isExpired) continue;
    if (lastType !== 'lookup.ResultForgotten.v1') return;
    await deleteStream({ ...deps, consumerProgress }, stream);
    await forgetStream(stream);
  }
}

/** Deletes the uses of a result that processes noted while it was erased, which they write with a delay. */
export async function forgetLateUses({ pool }: Pick<ErasureDeps, 'pool'>, ip: string): Promise<void> {
  await pool.query(
    'delete from work.lookup_use u where u.ip = $1 and not exists (select from read.saved_lookup s where s.ip = u.ip)',
    [ip],
  );
}
