import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import { searchKey } from '../../domain/kernel/text.ts';
import {
  type CustomParameters,
  type SessionSecrets,
  sessionSecretsSchema,
} from '../../domain/sessions/events.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type DayKeys, tryToOpen } from '../../platform/crypto/keyring.ts';
import { rowLoader } from '../../platform/limits/loaders.ts';
import type { SessionBody } from '../../read-api/sessions/schemas.ts';
import { findUnexpired, type Reads } from '../reads.ts';

const sessionRow = z.object({
  session_id: z.string(),
  tracker_id: z.string(),
  customer_reference: z.string().nullable(),
  visitor_country: z.string().nullable(),
  sealed: z.string(),
  first_seen_at: z.string(),
  last_seen_at: z.string(),
  expires_at: z.string(),
  /** bigint as text. */
  position: z.string(),
});
type SessionRow = z.output<typeof sessionRow>;

const COLUMNS = sql.fragment`
  s.session_id, s.tracker_id, t.customer_reference, s.visitor_country, s.sealed, s.first_seen_at, s.last_seen_at,
  s.expires_at, s.position::text as position`;
/** Left join: a session must not be missing because its tracker's row is, since the feed passes it only once. */
const FROM = sql.fragment`from read.session s left join read.tracker t on t.tracker_id = s.tracker_id`;

interface FeedQuery {
  readonly partnerId: string;
  /** Tracker of the sessions; null: all trackers. */
  readonly trackerId: string | null;
  readonly after: bigint;
  readonly limit: number;
  readonly now: number;
}

/** The sessions after a position in the log, oldest first, without those that have expired. */
export function readFeed(
  db: DatabasePool,
  { partnerId, trackerId, after, limit, now }: FeedQuery,
): Promise<readonly SessionRow[]> {
  // One or the other alone: together they would keep the planner from either index.
  const whose =
    trackerId === null
      ? sql.fragment`s.partner_id = ${partnerId}`
      : sql.fragment`s.tracker_id = ${trackerId}`;
  return db.any(sql.type(sessionRow)`
    select ${COLUMNS} ${FROM}
    where ${whose} and s.position > ${after.toString()}::bigint
      and s.expires_at > ${new Date(now).toISOString()}::timestamptz
    order by s.position limit ${limit}`);
}

/** What a search of the dashboard's finds; null and undefined: any. */
export interface SessionFilter {
  /** ISO 3166-1 alpha-2; `unknown`: none was found. */
  readonly country?: string;
  readonly revealed?: 'yes' | 'no';
  /** Part of a revealed company's name. */
  readonly company?: string;
  /** First seen since this instant (ISO 8601), and before that one. */
  readonly from?: string;
  readonly to?: string;
}

interface ScanQuery extends Omit<FeedQuery, 'after' | 'limit'> {
  /** Position before which the sessions stand; null: the end. */
  readonly before: bigint | null;
  readonly filter: SessionFilter;
  /** Sessions that are looked at, and of which at most so many are found. */
  readonly scan: number;
}

const scannedRow = z.object({
  scanned_to: z.string().nullable(),
  oldest: z.string().nullable(),
  scanned: z.number(),
  // What a left join leaves empty where nothing was found.
  session_id: z.string().nullable(),
  tracker_id: z.string().nullable(),
  customer_reference: z.string().nullable(),
  visitor_country: z.string().nullable(),
  sealed: z.string().nullable(),
  first_seen_at: z.string().nullable(),
  last_seen_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  position: z.string().nullable(),
});

export interface Scan {
  readonly rows: readonly SessionRow[];
  /** Position of the last session that was looked at; null: there was none. */
  readonly scannedTo: bigint | null;
  /** Whether there is nothing more to look at. */
  readonly isEnd: boolean;
}

/** Whether a session has a reveal, complete or pending, that meets the condition. */
const hasReveal = (condition: ReturnType<typeof sql.fragment>) => sql.fragment`exists (
  select from read.reveal r
  where r.session_id = s.session_id and r.partner_id = s.partner_id and ${condition})`;

/**
 * Looks at the newest unexpired sessions before a position and returns those that the filter finds, newest first. It costs as much
 * for few as for a million sessions, since it looks at `scan` of them, of a country by its index.
 */
export async function scanSessions(
  db: DatabasePool,
  { partnerId, trackerId, before, now, filter, scan }: ScanQuery,
): Promise<Scan> {
  const cursor =
    before === null ? sql.fragment`true` : sql.fragment`s.position < ${before.toString()}::bigint`;
  // Trackers' ids stand on public pages. Of another partner's tracker no row is read: to find none among them that is the
  // partner's own would take longer the more there are.
  const whose =
    trackerId === null
      ? sql.fragment`s.partner_id = ${partnerId}`
      : sql.fragment`s.tracker_id = ${trackerId} and exists (
          select from read.tracker own where own.tracker_id = ${trackerId} and own.partner_id = ${partnerId})`;
  const { country, revealed, company, from, to } = filter;
  const ofCountry =
    country === undefined
      ? sql.fragment`true`
      : country === 'unknown'
        ? sql.fragment`left(s.visitor_country, 2) is null`
        : sql.fragment`left(s.visitor_country, 2) = ${country}`;
  const conditions = [
    ...(from === undefined ? [] : [sql.fragment`s.first_seen_at >= ${from}::timestamptz`]),
    ...(to === undefined ? [] : [sql.fragment`s.first_seen_at < ${to}::timestamptz`]),
    ...(revealed === undefined
      ? []
      : [
          revealed === 'yes'
            ? hasReveal(sql.fragment`true`)
            : sql.fragment`not ${hasReveal(sql.fragment`true`)}`,
        ]),
    ...(company === undefined
      ? []
      : [
          hasReveal(sql.fragment`(strpos(r.company_search, ${searchKey(company)}) > 0
            or r.company_search is null and r.result ->> 'match_type' = 'company'
              and strpos(lower(r.result -> 'company' ->> 'name'), lower(${company})) > 0)`),
        ]),
  ];
  const matches = sql.join([sql.fragment`true`, ...conditions], sql.fragment` and `);
  const rows = await db.any(sql.type(scannedRow)`
    with candidates as materialized (
      select * from read.session s
      where ${whose} and ${ofCountry} and ${cursor} and s.expires_at > ${new Date(now).toISOString()}::timestamptz
      order by s.position desc limit ${scan})
    select i.*, m.*
    from (select min(position)::text as scanned_to, min(first_seen_at) as oldest, count(*)::int as scanned
          from candidates) i
    left join (select ${COLUMNS} from candidates s left join read.tracker t on t.tracker_id = s.tracker_id
               where ${matches}) m on true
    order by m.position::bigint desc`);
  const [first] = rows;
  return {
    rows: rows.filter(({ session_id }) => session_id !== null) as readonly SessionRow[],
    scannedTo: first?.scanned_to ? BigInt(first.scanned_to) : null,
    isEnd: (first?.scanned ?? 0) < scan || (from !== undefined && (first?.oldest ?? '') < earlier(from)),
  };
}

/** Sessions stand in the order of the log, from which the clocks of processes may differ a little. */
const CLOCKS_DIFFER_MS = 3_600_000;
const earlier = (instant: string): string => new Date(Date.parse(instant) - CLOCKS_DIFFER_MS).toISOString();

/**
 * Returns a position of the log behind which no session began before an instant (ISO 8601), from where a search for older ones may
 * start; null: there is no older one. Of all partners, because expiry is the order that has an index.
 */
export async function positionAt(db: DatabasePool, instant: string, keptMs: number): Promise<bigint | null> {
  const until = new Date(Date.parse(instant) + keptMs + CLOCKS_DIFFER_MS).toISOString();
  const row = await db.maybeOne(sql.type(z.object({ position: z.string() }))`
    select position::text as position from read.session where expires_at < ${until}::timestamptz
    order by expires_at desc limit 1`);
  return row === null ? null : BigInt(row.position) + 1n;
}

/** One session of the partner's, expired or not. */
const readSession = (db: DatabasePool, partnerId: string, sessionId: string): Promise<SessionRow | null> =>
  db.maybeOne(sql.type(sessionRow)`
    select ${COLUMNS} ${FROM} where s.session_id = ${sessionId} and s.partner_id = ${partnerId}`);

/** A session of the partner's that has not expired, or why there is none. `now` in milliseconds. */
export const findSession = (reads: Reads, partnerId: string, id: string, now: number) =>
  findUnexpired(reads, { kind: 'session', id, partnerId, now }, () => readSession(reads.db, partnerId, id));

/** Sessions as the API shows them, their labels unsealed. One whose labels were destroyed counts as expired: it is left out. */
export async function toSessionBodies(rows: readonly SessionRow[], dayKeys: DayKeys): Promise<SessionBody[]> {
  const secrets = await openSecrets(rows, dayKeys);
  return rows.flatMap((row, index) => {
    const custom = secrets[index]?.custom;
    if (custom === undefined) return [];
    const { sealed: _, position: __, session_id, tracker_id, customer_reference, ...rest } = row;
    return [{ session_id, tracker_id, customer_reference, custom, ...rest }];
  });
}

/**
 * What is sealed of each session. null: the key of its day was destroyed, by age, or before by a clock that was ahead.
 */
export async function openSecrets(
  rows: readonly Pick<SessionRow, 'session_id' | 'first_seen_at' | 'sealed'>[],
  dayKeys: DayKeys,
): Promise<(SessionSecrets | null)[]> {
  const days = [...new Set(rows.map(dayOf))];
  const keys = new Map(await Promise.all(days.map(async (day) => [day, await dayKeys.of(day)] as const)));
  return rows.map((row) => {
    const key = keys.get(dayOf(row));
    const plain = key && tryToOpen(key, Buffer.from(row.sealed, 'base64'), row.session_id);
    return plain ? sessionSecretsSchema.parse(JSON.parse(plain.toString('utf8'))) : null;
  });
}

const dayOf = ({ first_seen_at }: Pick<SessionRow, 'first_seen_at'>): string => first_seen_at.slice(0, 10);

interface RevealableSessionDeps extends Reads {
  readonly pool: pg.Pool;
  readonly dayKeys: DayKeys;
  readonly clock: Clock;
}

interface RevealableRow extends Pick<SessionRow, 'session_id' | 'tracker_id' | 'sealed'> {
  readonly partner_id: string;
  readonly first_seen_at: Date;
  readonly expires_at: Date;
}

/** Reads sessions of any partner, those of one moment together. */
const revealableRows = (pool: pg.Pool) =>
  rowLoader(async (ids) => {
    const { rows } = await pool.query<RevealableRow>({
      name: 'revealable_sessions',
      text: `select session_id, partner_id, tracker_id, sealed, first_seen_at, expires_at
             from read.session where session_id = any ($1::uuid[])`,
      values: [ids],
    });
    return new Map(
      rows.map(({ first_seen_at, expires_at, ...row }) => [
        row.session_id,
        { ...row, first_seen_at: first_seen_at.toISOString(), expires_at: expires_at.toISOString() },
      ]),
    );
  });

/**
 * One request asks for a session several times, and one session is often revealed several times. Below a second: an erased session
 * must not be revealed.
 */
const REMEMBERED_MS = 900;
const SESSIONS = 5_000;

/** A session whose sealed address and labels are open. */
interface OpenedSession extends SessionSecrets {
  readonly session_id: string;
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly expires_at: string;
}

/** What a reveal needs of its session. These fields never change, so reading them from a table is safe (ADR 19). */
export function createRevealableSessions(deps: RevealableSessionDeps) {
  const known = new LRUCache<string, OpenedSession>({ max: SESSIONS, ttl: REMEMBERED_MS });
  const readRow = revealableRows(deps.pool);
  const readOwn = async (partnerId: string, sessionId: string) => {
    const row = await readRow(sessionId);
    return row?.partner_id === partnerId ? row : null;
  };

  const open = async (
    partner_id: string,
    sessionId: string,
  ): Promise<OpenedSession | 'session_not_found' | 'session_expired'> => {
    const name = `${partner_id} ${sessionId}`;
    const now = deps.clock.now();
    const remembered = known.get(name);
    if (remembered && now < Date.parse(remembered.expires_at)) return remembered;
    const wanted = { kind: 'session', id: sessionId, partnerId: partner_id, now } as const;
    const row = await findUnexpired(deps, wanted, () => readOwn(partner_id, sessionId));
    if (typeof row === 'string') return row;
    const { session_id, tracker_id, expires_at } = row;
    const [secrets = null] = await openSecrets([row], deps.dayKeys);
    // Its day has expired at this moment, or a clock that was ahead has destroyed the day's key.
    if (secrets === null) return 'session_expired';
    const found = { ...secrets, session_id, tracker_id, partner_id, expires_at };
    known.set(name, found);
    return found;
  };

  return {
    find: async (partnerId: string, sessionId: string) => {
      const found = await open(partnerId, sessionId);
      if (typeof found === 'string') return found;
      const { ip, custom: _, ...session } = found;
      return { ...session, publicIp: parsePublicAddress(ip) };
    },
    /** The visitor's public address; null: it is not public, or the session has expired. */
    addressOf: async (partnerId: string, sessionId: string): Promise<string | null> => {
      const found = await open(partnerId, sessionId);
      return typeof found === 'string' ? null : parsePublicAddress(found.ip);
    },
    customOf: async (partnerId: string, sessionId: string): Promise<CustomParameters> => {
      const found = await open(partnerId, sessionId);
      return typeof found === 'string' ? {} : found.custom;
    },
  };
}
