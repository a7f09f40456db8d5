import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { ApiKey } from '../../http/contract/route.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { rowLoader, shortCache } from '../../platform/limits/loaders.ts';

type KeyRow = Omit<ApiKey, 'kind'> & { readonly expires_at: Date | null };

interface KnownKey {
  readonly key: ApiKey;
  /** Milliseconds. */
  readonly expiresAt: number;
}

const MAX_CACHED = 10_000;

/**
 * Finds the key behind a Bearer token, by its hash. Known keys are cached for less than half a second, so that a revocation holds
 * everywhere within a second; unknown tokens are asked about each time, together. null: unknown, expired or revoked.
 */
export function createAuthenticate(
  pool: pg.Pool,
  clock: Clock,
): (token: string) => ApiKey | null | Promise<ApiKey | null> {
  const findRow = rowLoader(async (hashes) => {
    const { rows } = await pool.query<KeyRow & { hash: string }>({
      name: 'calling_keys',
      text: `select hash, key_id, partner_id, name, requests_per_second, new_enrichments_per_day, pending_enrichments,
                    company_signals, expires_at
             from read.api_key where hash = any ($1) and revoked_at is null`,
      values: [hashes],
    });
    return new Map(rows.map(({ hash, ...row }) => [hash, row]));
  });

  async function findKey(token: string): Promise<KnownKey | null> {
    const row = await findRow(createHash('sha256').update(token).digest('hex'));
    if (row === null) return null;
    const { expires_at, ...key } = row;
    return { key: { kind: 'key', ...key }, expiresAt: expires_at?.getTime() ?? Number.POSITIVE_INFINITY };
  }

  const keys = shortCache(findKey, { max: MAX_CACHED, isCached: (known) => known !== null });

  const unexpired = (known: KnownKey | null): ApiKey | null =>
    known && known.expiresAt > clock.now() ? known.key : null;

  return (token) => {
    const known = keys.find(token);
    return known instanceof Promise ? known.then(unexpired) : unexpired(known);
  };
}
