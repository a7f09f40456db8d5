import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import type { UnitRow } from '../../domain/billing/audit-reveals.ts';
import { DAY } from '../../domain/kernel/time.ts';

/** Whose completed reveals are meant. */
export type RevealsOf = { readonly key_id: string } | { readonly tracker_id: string };

const hourRow = z.object({ hour: z.string(), billable_reveals: z.number(), completed_reveals: z.number() });
export type RevealHour = z.output<typeof hourRow>;

const whose = (of: RevealsOf) =>
  'key_id' in of ? sql.fragment`key_id = ${of.key_id}` : sql.fragment`tracker_id = ${of.tracker_id}`;

/** Selects completions of a UTC month, `YYYY-MM`. */
export const during = (month: string) => sql.fragment`completed_at >= ${monthStart(month)}::timestamptz
  and completed_at < ${monthStart(month)}::timestamptz + interval '1 month'`;

/** An audit leaves out what has completed since it began. `position` of the log. */
const until = (position: bigint | undefined) =>
  position === undefined ? sql.fragment`true` : sql.fragment`position <= ${String(position)}::bigint`;

/**
 * Completed reveals by UTC hour of completion, hours without any left out, from `from` (inclusive) to `to` (exclusive),
 * both ISO 8601. Receipts that have expired are still counted.
 */
export const readRevealHours = (
  db: DatabasePool,
  of: RevealsOf,
  from: string,
  to: string,
): Promise<readonly RevealHour[]> =>
  db.any(sql.type(hourRow)`
    select date_trunc('hour', completed_at, 'UTC') as hour, sum(units)::int as billable_reveals,
           count(*)::int as completed_reveals
    from read.reveal_unit
    where ${whose(of)} and completed_at >= ${from}::timestamptz and completed_at < ${to}::timestamptz
    group by hour
    order by hour`);

const unitsRow = z.object({ units: z.number(), completed: z.number() });
const ownRow = unitsRow.extend({ id: z.string() });

/**
 * Completed reveals of keys, whichever partner's, and their units in a UTC month (`YYYY-MM`), by key. Keys without any are left
 * out. All keys at once: a script may make a key for each reveal.
 */
export const countUnitsOfKeys = (
  db: DatabasePool,
  keyIds: readonly string[],
  month: string,
  upTo: bigint,
): Promise<readonly z.output<typeof ownRow>[]> =>
  db.any(sql.type(ownRow)`
    select key_id as id, sum(units)::int as units, count(*)::int as completed
    from read.reveal_unit
    where key_id = any (${sql.array([...keyIds], 'text')}) and ${during(month)} and ${until(upTo)}
    group by key_id`);

/** The same of a partner's users. */
export const countUnitsOfUsers = (
  db: DatabasePool,
  partnerId: string,
  month: string,
  upTo: bigint,
): Promise<readonly z.output<typeof ownRow>[]> =>
  db.any(sql.type(ownRow)`
    select user_id as id, sum(units)::int as units, count(*)::int as completed
    from read.reveal_unit
    where partner_id = ${partnerId} and user_id is not null and ${during(month)} and ${until(upTo)}
    group by user_id`);

/** A partner's completed reveals and their units, in a UTC month (`YYYY-MM`) or ever. */
export function countUnits(
  db: DatabasePool,
  partnerId: string,
  month?: string,
  upTo?: bigint,
): Promise<z.output<typeof unitsRow>> {
  const when = month === undefined ? sql.fragment`true` : during(month);
  return db.one(sql.type(unitsRow)`
    select coalesce(sum(units), 0)::int as units, count(*)::int as completed
    from read.reveal_unit where partner_id = ${partnerId} and ${when} and ${until(upTo)}`);
}

const actorRow = unitsRow.extend({ key_id: z.string().nullable(), user_id: z.string().nullable() });
export type UnitsOfActor = z.output<typeof actorRow>;

const MOST_DAYS = 31;

/**
 * A partner's completed reveals and their units by the key or the user that asked, from `from` (inclusive) to `to` (exclusive), both
 * ISO 8601. In steps of a month, because a statement over a year of millions of reveals takes too long.
 */
export async function listUnitsByActor(
  db: DatabasePool,
  partnerId: string,
  from: string,
  to: string,
): Promise<readonly UnitsOfActor[]> {
  const found = new Map<string, UnitsOfActor>();
  for (let start = from; start < to; ) {
    const next = new Date(Date.parse(start) + MOST_DAYS * DAY).toISOString();
    const end = next < to ? next : to;
    const rows = await db.any(sql.type(actorRow)`
      select key_id, user_id, sum(units)::int as units, count(*)::int as completed
      from read.reveal_unit
      where partner_id = ${partnerId} and completed_at >= ${start}::timestamptz and completed_at < ${end}::timestamptz
      group by key_id, user_id`);
    for (const row of rows) {
      const id = `${row.key_id} ${row.user_id}`;
      const { units = 0, completed = 0 } = found.get(id) ?? {};
      found.set(id, { ...row, units: row.units + units, completed: row.completed + completed });
    }
    start = end;
  }
  return [...found.values()].toSorted((one, other) => other.units - one.units);
}

export interface UnitsOfMonth extends z.output<typeof unitsRow> {
  /** `YYYY-MM`. */
  readonly month: string;
}

/**
 * A partner's completed reveals and their units by UTC month (`YYYY-MM`), the newest first, months without any left out. Month
 * by month, because a statement over all months of a partner with millions of reveals takes too long.
 */
export async function listMonths(db: DatabasePool, partnerId: string): Promise<readonly UnitsOfMonth[]> {
  const span = await db.one(sql.type(z.object({ first: z.string().nullable(), last: z.string().nullable() }))`
    select min(completed_at) as first, max(completed_at) as last from read.reveal_unit where partner_id = ${partnerId}`);
  if (span.first === null || span.last === null) return [];
  const months: UnitsOfMonth[] = [];
  for (let end = monthEnd(span.last.slice(0, 7)); end > span.first; ) {
    const month = new Date(Date.parse(end) - 1).toISOString().slice(0, 7);
    const counted = await countUnits(db, partnerId, month);
    if (counted.completed > 0) months.push({ month, ...counted });
    end = monthStart(month);
  }
  return months;
}

/** The first instant of a UTC month `YYYY-MM`, and that of the next. */
export const monthStart = (month: string): string => `${month}-01T00:00:00.000Z`;
export function monthEnd(month: string): string {
  const start = new Date(monthStart(month));
  return new Date(start.setUTCMonth(start.getUTCMonth() + 1)).toISOString();
}

const unitRow = z.object({
  reveal_id: z.string(),
  tracker_id: z.string(),
  key_id: z.string().nullable(),
  user_id: z.string().nullable(),
  completed_at: z.string(),
  units: z.number(),
  cursor: z.string(),
  ledger_number: z.number().nullable(),
});

/** Read for an audit, which must not keep the process from its requests for long. */
const PAGE = 1_000;

/** All rows of a partner's completed reveals up to a position of the log, in the log's order. */
export async function readUnitRows(db: DatabasePool, partnerId: string, upTo: bigint): Promise<UnitRow[]> {
  const rows: UnitRow[] = [];
  for (;;) {
    const after = rows.at(-1)?.position ?? -1n;
    const page = await db.any(sql.type(unitRow)`
      select reveal_id, tracker_id, key_id, user_id, completed_at, units, position::text as cursor, ledger_number
      from read.reveal_unit
      where partner_id = ${partnerId} and position > ${String(after)}::bigint and ${until(upTo)}
      order by position limit ${PAGE}`);
    for (const { cursor, ...row } of page) rows.push({ ...row, position: BigInt(cursor) });
    if (page.length < PAGE) return rows;
  }
}
