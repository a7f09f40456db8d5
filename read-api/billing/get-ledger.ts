import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { hasUsualYear } from '../../domain/kernel/time.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { iso } from '../../platform/clock/clock.ts';
import { during } from '../../queries/billing/reveal-units.ts';
import { awaitReadModels, type Reads } from '../../queries/reads.ts';
import type { Cursors } from '../cursor.ts';
import { namedParameters } from '../query.ts';
import { DEFAULT_ENTRIES, getLedgerOperation, type LedgerPage, MAX_ENTRIES } from './schemas.ts';

interface LedgerDeps extends Reads {
  readonly cursors: Cursors;
  /** Waits for the entries of what has completed; returns after a time limit too. */
  readonly waitForBilling: () => Promise<void>;
  /** Entries of these numbers, ascending, as the log has them: a proof is not made of tables (ADR 37). */
  readonly entries: (partnerId: string, numbers: readonly number[]) => Promise<LedgerPage['entries']>;
  /** The last entry; null before the first. */
  readonly lastEntry: (partnerId: string) => Promise<LedgerPage['entries'][number] | null>;
  /** The newest anchor that is kept; null before the first. */
  readonly lastAnchor: (partnerId: string) => Promise<LedgerPage['anchor']>;
}

/** GET /v1/ledger: the partner's bill with its proof (decisions, Additions). */
export const getLedgerRoute = (deps: LedgerDeps): PartnerRoute => ({
  method: 'GET',
  path: '/v1/ledger',
  access: 'partner',
  body: 'none',
  bodyLimit: 0,
  operation: getLedgerOperation,
  handle: (request) => readLedger(deps, request),
});

async function readLedger(deps: LedgerDeps, request: PartnerRequest): Promise<Reply> {
  const { cursors } = deps;
  const asked = parseQuery(request.query, request.receivedAt);
  if (asked === null) return refusal(request, 'invalid_range');
  const { month, limit } = asked;
  const partnerId = request.caller.partner_id;
  const list = `ledger ${partnerId} ${month}`;
  const from = asked.cursor === undefined ? 0n : await cursors.open(asked.cursor, list);
  if (from === null) return refusal(request, 'invalid_cursor');

  await deps.waitForBilling();
  // In this order, so that the anchor's last entry is in the ledger.
  const anchor = await deps.lastAnchor(partnerId);
  const last = await deps.lastEntry(partnerId);
  await awaitReadModels(deps);
  const upTo = last?.number ?? -1;
  const { numbers, ...totals } = await readMonth(deps.db, { partnerId, month, from, upTo, limit: limit + 1 });
  const page = numbers.slice(0, limit);
  const body: LedgerPage = {
    month,
    entries: await deps.entries(partnerId, page),
    totals,
    head: last && { number: last.number, digest: last.digest },
    anchor,
    next_cursor: await cursors.seal(BigInt((page.at(-1) ?? Number(from) - 1) + 1), list),
    has_more: numbers.length > limit,
    request_id: request.id,
  };
  return { status: 200, body: JSON.stringify(body) };
}

/** null: a parameter that there is not, one of them twice, no month, or a limit out of range. */
function parseQuery(query: string, now: number) {
  const given = namedParameters(query, ['month', 'cursor', 'limit']);
  const month = given?.month ?? iso(now).slice(0, 7);
  const limit = given?.limit ?? String(DEFAULT_ENTRIES);
  const isMonth = /^\d{4}-(0[1-9]|1[0-2])$/.test(month) && hasUsualYear(month);
  const isLimit = /^[1-9]\d{0,2}$/.test(limit) && Number(limit) <= MAX_ENTRIES;
  return given && isMonth && isLimit ? { month, cursor: given.cursor, limit: Number(limit) } : null;
}

const monthRow = z.object({ entries: z.number(), units: z.number(), numbers: z.array(z.number()) });

interface MonthQuery {
  readonly partnerId: string;
  readonly month: string;
  /** First number of the page. */
  readonly from: bigint;
  /** Last number of the ledger. */
  readonly upTo: number;
  readonly limit: number;
}

/** Counts the entries of a month, and finds the numbers of a page. */
const readMonth = (
  db: DatabasePool,
  { partnerId, month, from, upTo, limit }: MonthQuery,
): Promise<z.output<typeof monthRow>> =>
  db.one(sql.type(monthRow)`
    with entry as materialized (
      select ledger_number as number, units from read.reveal_unit
      where partner_id = ${partnerId} and ledger_number <= ${upTo} and ${during(month)})
    select (select count(*)::int from entry) as entries, (select coalesce(sum(units), 0)::int from entry) as units,
           array(select number from entry where number >= ${String(from)}::bigint order by number limit ${limit}) as numbers`);
