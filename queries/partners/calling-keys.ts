import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { ApiKey } from '../../http/contract/route.ts';
import type { Clock } from '../../platform/clock.ts';
import { readTogether } from '../../platform/read-together.ts';

type KeyRow = Omit<ApiKey, 'kind'> & { readonly expires_at: Date | null };

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
 * are asked about each time, together. null: unknown, expired or revoked.
 */
export const createAuthenticate = (pool: pg.Pool, clock: Clock) => {
  const cache = new LRUCache<string, Known>({ max: CACHED });
  const asking = new Map<string, Promise<Known | null>>();

  const find = readTogether(async (hashes) => {
    const { rows } = await pool.query<KeyRow & { hash: string }>({
      name: 'calling_keys',
      text: `select hash, key_id, partner_id, name, requests_per_second, new_enrichments_per_day, pending_enrichments,
                    company_signals, expires_at
             from read.api_key where hash = any ($1) and revoked_at is null`,
      values: [hashes],
    });
    return new Map(rows.map(({ hash, ...row }) => [hash, row]));
  });

  const read = async (token: string): Promise<Known | null> => {
    const readAt = performance.now();
    const row = await find(createHash('sha256').update(token).digest('hex'));
    if (!row) {
      cache.delete(token);
      return null;
    }
    const { expires_at, ...key } = row;
    const known = {
      key: { kind: 'key', ...key },
      expiresAt: expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
      readAt,
    } as const;
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
