/** Named readers of the bodies of webhook events. */
import type pg from 'pg';
import { type DayKeys, tryToOpen } from '../../../platform/crypto/keyring.ts';
import { rowLoader, shortCache } from '../../../platform/limits/loaders.ts';

/** The body of an event, byte for byte as it was stored; null: it has expired, is unreadable, or there was none. */
export type BodyOf = (eventId: string) => Promise<Buffer | null>;

/** Like `BodyOf`; `unreadable`: the body is stored and has not expired, but its day key was destroyed too early. */
type BodyToSend = (eventId: string) => Promise<Buffer | 'unreadable' | null>;

interface SealedBody {
  readonly event_id: string;
  readonly day: string;
  readonly sealed: Buffer;
  readonly expires_at: Date;
}

type FindSealed = (eventId: string) => SealedBody | null | Promise<SealedBody | null>;

/** Concurrent calls share a query. */
const sealedBodies = (pool: pg.Pool): FindSealed =>
  rowLoader(async (ids) => {
    const { rows } = await pool.query<SealedBody>({
      name: 'webhook_bodies',
      text: 'select event_id, day::text, sealed, expires_at from read.webhook_payload where event_id = any ($1)',
      values: [ids],
    });
    return new Map(rows.map((row) => [row.event_id, row]));
  });

const openingBodies =
  (find: FindSealed, dayKeys: DayKeys, now: () => number): BodyToSend =>
  async (eventId) => {
    const row = await find(eventId);
    if (row === null || row.expires_at.getTime() <= now()) return null;
    const key = await dayKeys.of(row.day);
    return key && (tryToOpen(key, row.sealed, row.event_id) ?? 'unreadable');
  };

/** Creates the reader for people and the API. */
export function createBodies(pool: pg.Pool, dayKeys: DayKeys, now: () => number): BodyOf {
  const stored = openingBodies(sealedBodies(pool), dayKeys, now);
  return async (eventId) => {
    const body = await stored(eventId);
    return body === 'unreadable' ? null : body;
  };
}

const BODIES_CACHED = 1_000;
const MAX_BYTES_CACHED = 16_384;

/** Creates the reader for attempts. It caches sealed bodies, because several endpoints get an event at about the same time. */
export function createBodiesToSend(pool: pg.Pool, dayKeys: DayKeys, now: () => number): BodyToSend {
  const read = sealedBodies(pool);
  const cached = shortCache(async (eventId) => read(eventId), {
    max: BODIES_CACHED,
    isCached: (row) => row !== null && row.sealed.length <= MAX_BYTES_CACHED,
  });
  return openingBodies(cached.find, dayKeys, now);
}
