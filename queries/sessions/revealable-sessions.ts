import { LRUCache } from 'lru-cache';
import type { DatabasePool } from 'slonik';
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import type { CustomParameters, SessionSecrets } from '../../domain/sessions/events.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import type { DayKeys } from '../../platform/crypto/keyring.ts';
import { findSession, openSecrets } from './sessions.ts';

export interface RevealableSessionDeps {
  readonly db: DatabasePool;
  readonly dayKeys: DayKeys;
  readonly clock: Clock;
  /** Waits until the read models have all that the store has now, or a time limit is over. */
  readonly caughtUp: () => Promise<boolean>;
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

/** What a reveal needs of its session. A session never changes in any of it, so that a table may say so. */
export const createRevealableSessions = (deps: RevealableSessionDeps) => {
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
};
