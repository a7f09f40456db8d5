/** Named readers of the bodies of webhook events. */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { SealedBody } from '../../../domain/webhooks/events.ts';
import { runSoon } from '../../../platform/clock/waiting.ts';
import { type DayKeys, tryToOpen } from '../../../platform/crypto/keyring.ts';
import { rowLoader } from '../../../platform/limits/loaders.ts';

/** The body of an event, byte for byte as it was stored; null: it has expired, is unreadable, or there was none. */
export type BodyOf = (eventId: string) => Promise<Buffer | null>;

/** Like `BodyOf`; `unreadable`: the body is stored and has not expired, but its day key was destroyed too early. */
type BodyToSend = (eventId: string) => Promise<Buffer | 'unreadable' | null>;

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

/** Reads the bodies of attempts. */
export interface BodiesToSend {
  /** `manner`: `remembered`: it may come from memory, because a claim has just found it stored; `stored`: from the table. */
  of(eventId: string, manner: 'remembered' | 'stored'): ReturnType<BodyToSend>;
  /** Remembers a body that this process has stored. */
  remember(body: SealedBody): void;
}

const REMEMBERED_MS = 10_000;
const REMEMBERED_BYTES = 33_554_432;
/** What a remembered body takes beside its bytes. */
const ENTRY_BYTES = 512;

/**
 * Creates the reader for attempts. It remembers sealed bodies for a while: most are sent soon after they were queued, some to several
 * endpoints. A body never changes; whether it is still stored is asked with each claim.
 */
export function createBodiesToSend(pool: pg.Pool, dayKeys: DayKeys, now: () => number): BodiesToSend {
  const read = sealedBodies(pool);
  const remembered = new LRUCache<string, SealedBody>({
    ttl: REMEMBERED_MS,
    maxSize: REMEMBERED_BYTES,
    sizeCalculation: ({ sealed }) => sealed.length + ENTRY_BYTES,
  });
  const forgetting = runSoon(async () => {
    remembered.purgeStale();
    if (remembered.size > 0) forgetting.soon();
  }, REMEMBERED_MS / 10);
  const remember = (body: SealedBody): void => {
    remembered.set(body.event_id, body);
    forgetting.soon();
  };
  const stored: FindSealed = async (eventId) => {
    const body = await read(eventId);
    if (body !== null) remember(body);
    return body;
  };
  const from = {
    remembered: openingBodies((eventId) => remembered.get(eventId) ?? stored(eventId), dayKeys, now),
    stored: openingBodies(stored, dayKeys, now),
  };
  return { of: (eventId, manner) => from[manner](eventId), remember };
}
