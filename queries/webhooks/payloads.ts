import type pg from 'pg';
import { type DayKeys, tryToOpen } from '../../platform/crypto/keyring.ts';

/** The body of an event, byte for byte as it was stored; null: it has expired, is unreadable, or there was none. */
export type BodyOf = (eventId: string) => Promise<Buffer | null>;

/** `unreadable`: the body is stored and has not expired, but the key that it was sealed under was destroyed too early. */
export type StoredBodyOf = (eventId: string) => Promise<Buffer | 'unreadable' | null>;

interface SealedBody {
  readonly event_id: string;
  readonly day: string;
  readonly sealed: Buffer;
}

export const createBodies = (pool: pg.Pool, dayKeys: DayKeys, now: () => number): BodyOf => {
  const stored = createStoredBodies(pool, dayKeys, now);
  return async (eventId) => {
    const body = await stored(eventId);
    return body === 'unreadable' ? null : body;
  };
};

/** Concurrent calls share a query, because an event is often delivered to several endpoints at once. */
export const createStoredBodies = (pool: pg.Pool, dayKeys: DayKeys, now: () => number): StoredBodyOf => {
  let gathering: { readonly ids: Set<string>; readonly rows: Promise<Map<string, SealedBody>> } | null = null;

  const load = async (ids: Iterable<string>): Promise<Map<string, SealedBody>> => {
    const { rows } = await pool.query<SealedBody>({
      name: 'webhook_bodies',
      text: `select event_id, day::text, sealed from read.webhook_payload
             where event_id = any ($1) and expires_at > $2`,
      values: [[...ids], new Date(now())],
    });
    return new Map(rows.map((row) => [row.event_id, row]));
  };

  const open = async (row: SealedBody | undefined): Promise<Buffer | 'unreadable' | null> => {
    if (row === undefined) return null;
    const key = await dayKeys.of(row.day);
    return key === null ? null : (tryToOpen(key, row.sealed, row.event_id) ?? 'unreadable');
  };

  const gather = (): NonNullable<typeof gathering> => {
    const ids = new Set<string>();
    const turn = new Promise<void>((resolve) => setImmediate(resolve));
    const rows = turn.then(() => {
      gathering = null;
      return load(ids);
    });
    return { ids, rows };
  };

  return async (eventId) => {
    gathering ??= gather();
    const { ids, rows } = gathering;
    ids.add(eventId);
    return open((await rows).get(eventId));
  };
};
