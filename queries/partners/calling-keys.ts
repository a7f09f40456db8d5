import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { ApiKey } from '../../http/route.ts';
import type { Clock } from '../../platform/clock.ts';

interface Known {
  readonly key: ApiKey;
  readonly expiresAt: number;
  readonly readAt: number;
}

/** With the projection's delay on top, a revocation holds everywhere within a second. */
const TRUSTED_MS = 500;
const CACHED = 10_000;

/**
 * Finds the key behind a Bearer token, by its hash. Known keys are trusted for half a second; unknown tokens
 * are asked about each time. null: unknown, expired or revoked.
 */
export const createAuthenticate = (pool: pg.Pool, clock: Clock) => {
  const cache = new LRUCache<string, Known>({ max: CACHED });
  const asking = new Map<string, Promise<Known | null>>();

  const read = async (token: string): Promise<Known | null> => {
    const readAt = performance.now();
    const { rows } = await pool.query({
      name: 'calling_key',
      text: `select key_id, partner_id, name, requests_per_second, new_enrichments_per_day, pending_enrichments,
                    company_signals, expires_at
             from read.api_key where hash = $1 and revoked_at is null`,
      values: [createHash('sha256').update(token).digest('hex')],
    });
    const row = rows[0];
    if (!row) {
      cache.delete(token);
      return null;
    }
    const { expires_at, ...key } = row;
    const known = {
      key: { kind: 'key', ...key } as ApiKey,
      expiresAt: expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
      readAt,
    };
    cache.set(token, known);
    return known;
  };

  const ask = (token: string): Promise<Known | null> => {
    const before = asking.get(token);
    if (before) return before;
    const asked = read(token).finally(() => asking.delete(token));
    asking.set(token, asked);
    return asked;
  };

  const live = (known: Known | null): ApiKey | null =>
    known && known.expiresAt > clock.now() ? known.key : null;

  return (token: string): ApiKey | null | Promise<ApiKey | null> => {
    const known = cache.get(token);
    if (known && performance.now() - known.readAt < TRUSTED_MS) return live(known);
    return ask(token).then(live);
  };
};
