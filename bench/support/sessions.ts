import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Runtime } from '../../bin/runtime.ts';
import { newId } from '../../commands/handle.ts';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { addressOf } from './addresses.ts';

const BATCH = 10_000;
/** The newest is from now, the oldest this many days old: none has expired. */
const DAYS = 28;
const OTHERS = 3;
const FIRST = 1_000;

export interface FilledSessions {
  readonly partner: string;
  /** Their log positions. */
  readonly positions: { readonly first: bigint; readonly count: number };
}

interface Session {
  readonly id: string;
  readonly sealed: string;
  readonly first_seen_at: string;
  readonly expires_at: string;
}

/** Writes sessions into the read model: every fourth belongs to the tracker and its partner, the others to others. */
export const fillSessions = async (
  { databaseUrl, dayKeys, clock }: Pick<Runtime, 'databaseUrl' | 'dayKeys' | 'clock'>,
  tracker: string,
  count: number,
): Promise<FilledSessions> => {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    const { rows } = await db.query('select partner_id from read.tracker where tracker_id = $1', [tracker]);
    const partner: string = rows[0].partner_id;
    const trackers = [tracker, ...Array.from({ length: OTHERS }, () => randomUUID())];
    const partners = [partner, ...Array.from({ length: OTHERS }, () => randomUUID())];
    const from = clock.now() - DAYS * DAY;
    const make = async (number: number): Promise<Session> => {
      const at = from + (number / count) * DAYS * DAY;
      const key = await dayKeys.of(utcDay(at));
      if (key === null) throw new Error(`${utcDay(at)} has expired`);
      const id = newId();
      const secrets = { ip: addressOf(number), custom: { plan: 'pro', n: number } };
      const sealed = key.seal(Buffer.from(JSON.stringify(secrets)), id).toString('base64');
      return { id, sealed, first_seen_at: isoTime(at), expires_at: isoTime(at + 30 * DAY) };
    };
    const makeFrom = (first: number): Promise<Session[]> =>
      Promise.all(
        Array.from({ length: Math.max(0, Math.min(BATCH, count - first)) }, (_, n) => make(first + n)),
      );
    let batch = await makeFrom(0);
    for (let first = 0; batch.length > 0; first += BATCH) {
      const written = insert(db, batch, FIRST + first, partners, trackers);
      [batch] = await Promise.all([makeFrom(first + BATCH), written]);
    }
    // As autovacuum would some time after the last of them.
    await db.query('vacuum (analyze) read.session');
    await db.query('checkpoint');
    return { partner, positions: { first: BigInt(FIRST), count } };
  } finally {
    await db.end();
  }
};

const insert = (
  db: pg.Client,
  sessions: readonly Session[],
  position: number,
  partners: readonly string[],
  trackers: readonly string[],
): Promise<unknown> =>
  db.query({
    name: 'fill_sessions',
    text: `
      insert into read.session
        (session_id, partner_id, tracker_id, visitor_country, sealed, first_seen_at, last_seen_at, expires_at,
         position, stream, last_revision, last_position)
      select id, ($6::uuid[])[1 + n % $8], ($7::uuid[])[1 + n % $8], 'DE', sealed, at, at, expires_at,
             $5 + n, 'tab-' || id, 0, $5 + n
      from (select *, (row_number() over () - 1)::int as n
            from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::timestamptz[])
              as made (id, sealed, at, expires_at)) numbered`,
    values: [
      sessions.map(({ id }) => id),
      sessions.map(({ sealed }) => sealed),
      sessions.map(({ first_seen_at }) => first_seen_at),
      sessions.map(({ expires_at }) => expires_at),
      position,
      partners,
      trackers,
      partners.length,
    ],
  });
