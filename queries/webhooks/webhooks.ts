import type pg from 'pg';
import type { Logger } from 'pino';
import type { Clock } from '../../platform/clock/clock.ts';
import { type DayKeys, tryToOpen } from '../../platform/crypto/keyring.ts';
import { type MasterKey, openText, type SealedText } from '../../platform/crypto/master-key.ts';
import { rowLoader, shortCache } from '../../platform/limits/loaders.ts';

/** What signs for an endpoint, as its row has it. */
interface SecretRow {
  readonly webhook_id: string;
  /** null: the endpoint is deleted. */
  readonly secret: SealedText | null;
  readonly previous_secret: SealedText | null;
  readonly secret_rotation_until: Date | null;
}

/** The keys that sign at `now` (milliseconds), newest first: two while a rotation's overlap runs; none once deleted. */
function signingSecrets(master: MasterKey, row: SecretRow, now: number): Buffer[] {
  const { webhook_id, secret, previous_secret, secret_rotation_until } = row;
  const overlaps = secret_rotation_until !== null && now < secret_rotation_until.getTime();
  return [secret, overlaps ? previous_secret : null].flatMap((sealed) =>
    sealed === null ? [] : [openText(master, sealed, webhook_id)],
  );
}

/** Endpoints, deleted ones apart, of which a secret is sealed under another master key than this. */
export async function endpointsSealedOtherwise(
  pool: pg.Pool,
  masterKeyId: string,
): Promise<readonly { readonly webhook_id: string; readonly partner_id: string }[]> {
  const { rows } = await pool.query<{ webhook_id: string; partner_id: string }>(
    `select webhook_id, partner_id from read.webhook_endpoint
     where deleted_at is null
       and (secret->>'master_key_id' <> $1 or previous_secret->>'master_key_id' <> $1)
     order by webhook_id`,
    [masterKeyId],
  );
  return rows;
}

interface Target {
  readonly url: string;
  readonly secrets: readonly Buffer[];
}

interface TargetsDeps {
  readonly pool: pg.Pool;
  readonly master: MasterKey;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Where endpoints take their events just now, and what signs them; what takes none is left out. */
export const createTargets =
  ({ pool, master, clock, log }: TargetsDeps) =>
  async (webhookIds: readonly string[]): Promise<ReadonlyMap<string, Target>> => {
    const { rows } = await pool.query<SecretRow & { readonly url: string }>({
      name: 'webhook_targets',
      text: `select webhook_id, url, secret, previous_secret, secret_rotation_until
             from read.webhook_endpoint where webhook_id = any ($1) and enabled and deleted_at is null`,
      values: [webhookIds],
    });
    const targets = new Map<string, Target>();
    for (const row of rows) {
      try {
        targets.set(row.webhook_id, { url: row.url, secrets: signingSecrets(master, row, clock.now()) });
      } catch (error) {
        // Nothing goes out unsigned; the others do.
        log.error({ webhook: row.webhook_id, error: String(error) }, 'a signing secret cannot be opened');
      }
    }
    return targets;
  };

/** The body of an event, byte for byte as it was stored; null: it has expired, is unreadable, or there was none. */
export type BodyOf = (eventId: string) => Promise<Buffer | null>;

/** `unreadable`: the body is stored and has not expired, but the key that it was sealed under was destroyed too early. */
type StoredBodyOf = (eventId: string) => Promise<Buffer | 'unreadable' | null>;

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
  (find: FindSealed, dayKeys: DayKeys, now: () => number): StoredBodyOf =>
  async (eventId) => {
    const row = await find(eventId);
    if (row === null || row.expires_at.getTime() <= now()) return null;
    const key = await dayKeys.of(row.day);
    return key && (tryToOpen(key, row.sealed, row.event_id) ?? 'unreadable');
  };

export function createBodies(pool: pg.Pool, dayKeys: DayKeys, now: () => number): BodyOf {
  const stored = openingBodies(sealedBodies(pool), dayKeys, now);
  return async (eventId) => {
    const body = await stored(eventId);
    return body === 'unreadable' ? null : body;
  };
}

const BODIES_CACHED = 1_000;
const MOST_BYTES_CACHED = 16_384;

/** An event is often delivered to several endpoints at about the same time: its sealed body is read once. */
export function createStoredBodies(pool: pg.Pool, dayKeys: DayKeys, now: () => number): StoredBodyOf {
  const read = sealedBodies(pool);
  const cached = shortCache(async (eventId) => read(eventId), {
    max: BODIES_CACHED,
    isCached: (row) => row !== null && row.sealed.length <= MOST_BYTES_CACHED,
  });
  return openingBodies(cached.find, dayKeys, now);
}

/** Returns how full the fullest partner's queue is, by deliveries or by bytes of payloads: 1 is full. */
export async function readQueueFill(pool: pg.Pool, deliveries: number, bytes: number): Promise<number> {
  const { rows } = await pool.query<{ fill: number }>(
    `select greatest(
       (select max(n) / $1::float8 from (
         select sum(pending) as n from read.webhook_health where deleted_at is null group by partner_id) p),
       (select max(n) / $2::float8 from (select sum(bytes) as n from read.webhook_retained group by partner_id) b),
       0)::float8 as fill`,
    [deliveries, bytes],
  );
  return rows[0]?.fill ?? 0;
}

/** A queue of a partner's that is nearly full. */
export interface FullQueue {
  readonly queue: 'webhook_deliveries' | 'webhook_payload_bytes';
  readonly partner_id: string;
  readonly used: number;
  readonly limit: number;
}

/** Lists partners' queues that take at least `share` of their ceiling. */
export async function listFullQueues(
  pool: pg.Pool,
  ceilings: { readonly deliveries: number; readonly bytes: number },
  share: number,
): Promise<FullQueue[]> {
  const { rows } = await pool.query<FullQueue>(
    `select 'webhook_deliveries' as queue, partner_id, used::float8 as used, $1::float8 as limit
     from (select partner_id, sum(pending) as used from read.webhook_health where deleted_at is null group by 1) d
     where used >= $1 * $3::float8
     union all
     select 'webhook_payload_bytes', partner_id, used::float8, $2::float8
     from (select partner_id, sum(bytes) as used from read.webhook_retained group by 1) b where used >= $2 * $3`,
    [ceilings.deliveries, ceilings.bytes, share],
  );
  return rows;
}
