import type { DatabasePool } from 'slonik';
import type { DayKeys } from '../../platform/crypto/keyring.ts';
import { readRecent, toSessionBodies } from '../../queries/sessions/sessions.ts';
import type { Cursors } from '../cursor.ts';
import type { SessionBody } from './schemas.ts';

export interface RecentDeps {
  readonly db: DatabasePool;
  readonly dayKeys: DayKeys;
  readonly cursors: Cursors;
}

export interface RecentQuery {
  readonly partnerId: string;
  readonly trackerId: string | null;
  /** The `older` of an earlier page of the same list; null: the first page. */
  readonly before: string | null;
  readonly now: number;
}

const PAGE = 50;

/** Returns a page of a partner's sessions, newest first; null if the cursor is of another list. */
export const recentSessions = async (
  { db, dayKeys, cursors }: RecentDeps,
  { partnerId, trackerId, before, now }: RecentQuery,
): Promise<{ readonly sessions: readonly SessionBody[]; readonly older: string | null } | null> => {
  const list = `recent sessions ${partnerId}`;
  const cursor = before === null ? null : await cursors.open(before, list);
  if (cursor === null && before !== null) return null;
  const found = await readRecent(db, { partnerId, trackerId, before: cursor, limit: PAGE + 1, now });
  const page = found.slice(0, PAGE);
  const last = page.at(-1);
  return {
    sessions: await toSessionBodies(page, dayKeys),
    older: found.length > PAGE && last ? await cursors.seal(BigInt(last.position), list) : null,
  };
};
