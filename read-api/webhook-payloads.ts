import type pg from 'pg';
import type { DayKeys } from '../platform/day-keys.ts';

/** The body of an event, byte for byte as it was stored; null: it has expired, or there was none. */
export type BodyOf = (eventId: string) => Promise<Buffer | null>;

interface SealedBody {
  readonly event_id: string;
  readonly day: string;
  readonly sealed: Buffer;
}

/** Those who ask at the same time share a query: deliveries are attempted many at once, and of one event. */
export const createBodies = (pool: pg.Pool, dayKeys: DayKeys, now: () => number): BodyOf => {
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

  const open = async (row: SealedBody | undefined): Promise<Buffer | null> => {
    if (row === undefined) return null;
    return (await dayKeys.of(row.day))?.open(row.sealed, row.event_id) ?? null;
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
