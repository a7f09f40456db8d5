import type { DatabasePool } from 'slonik';
import { parsePublicAddress } from '../domain/kernel/address.ts';
import type { CustomParameters, SessionSecrets } from '../domain/sessions/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { DayKeys } from '../platform/day-keys.ts';
import { findSession, openSecrets, type SessionRow } from './session-rows.ts';

export interface RevealableSessionParts {
  readonly db: DatabasePool;
  readonly dayKeys: DayKeys;
  readonly clock: Clock;
  /** Waits until the read models have all that the store has now, or a time limit is over. */
  readonly caughtUp: () => Promise<boolean>;
}

/** What a reveal needs of its session. A session never changes in any of it, so that a table may say so. */
export const createRevealableSessions = (parts: RevealableSessionParts) => {
  const open = async (row: SessionRow): Promise<SessionSecrets> => {
    const [secrets] = await openSecrets([row], parts.dayKeys);
    // Better no answer than a reveal of nobody: the key was there when the session was found.
    if (!secrets) throw new Error('a session that has not expired cannot be unsealed');
    return secrets;
  };
  const find = (partnerId: string, sessionId: string) =>
    findSession(parts, partnerId, sessionId, parts.clock.now());

  return {
    find: async (partner_id: string, sessionId: string) => {
      const row = await find(partner_id, sessionId);
      if (typeof row === 'string') return row;
      const { session_id, tracker_id, expires_at } = row;
      const publicIp = parsePublicAddress((await open(row)).ip);
      return { session_id, tracker_id, partner_id, expires_at, publicIp };
    },
    /** The visitor's public address; null: it is not public, or the session has expired. */
    addressOf: async (partnerId: string, sessionId: string): Promise<string | null> => {
      const row = await find(partnerId, sessionId);
      return typeof row === 'string' ? null : parsePublicAddress((await open(row)).ip);
    },
    customOf: async (partnerId: string, sessionId: string): Promise<CustomParameters> => {
      const row = await find(partnerId, sessionId);
      return typeof row === 'string' ? {} : (await open(row)).custom;
    },
  };
};
