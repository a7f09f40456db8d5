import { LRUCache } from 'lru-cache';
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import {
  type CustomParameters,
  type SessionSecrets,
  sessionSecretsSchema,
} from '../../domain/sessions/events.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type DayKeys, tryToOpen } from '../../platform/crypto/keyring.ts';
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
  /** Of this partner; null: all of them. */
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

/** Lists the unexpired sessions before a position (null: the end), newest first, for the dashboard. */
export function readRecent(
  db: DatabasePool,
  { partnerId, trackerId, before, limit, now }: Omit<FeedQuery, 'after'> & { readonly before: bigint | null },
): Promise<readonly SessionRow[]> {
  const cursor =
    before === null ? sql.fragment`true` : sql.fragment`s.position < ${before.toString()}::bigint`;
  // Trackers' ids stand on public pages. Of another partner's tracker no row is read: to find none among them that is the
  // partner's own would take longer the more there are.
  const whose =
    trackerId === null
      ? sql.fragment`s.partner_id = ${partnerId}`
      : sql.fragment`s.tracker_id = ${trackerId} and exists (
          select from read.tracker own where own.tracker_id = ${trackerId} and own.partner_id = ${partnerId})`;
  return db.any(sql.type(sessionRow)`
    select ${COLUMNS} ${FROM}
    where ${whose} and ${cursor} and s.expires_at > ${new Date(now).toISOString()}::timestamptz
    order by s.position desc limit ${limit}`);
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
  readonly dayKeys: DayKeys;
  readonly clock: Clock;
}

/** One request asks for a session several times, and one session is often revealed several times. */
const REMEMBERED_MS = 5_000;
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

  const open = async (
    partner_id: string,
    sessionId: string,
  ): Promise<OpenedSession | 'session_not_found' | 'session_expired'> => {
    const name = `${partner_id} ${sessionId}`;
    const now = deps.clock.now();
    const remembered = known.get(name);
    if (remembered && now < Date.parse(remembered.expires_at)) return remembered;
    const row = await findSession(deps, partner_id, sessionId, now);
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
