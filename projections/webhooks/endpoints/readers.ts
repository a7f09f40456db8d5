/** Named readers of endpoints: as partners see them, and what signs for them. */
import type pg from 'pg';
import type { Logger } from 'pino';
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { WEBHOOK_HISTORY_MS } from '../../../domain/webhooks/events.ts';
import type { Clock } from '../../../platform/clock/clock.ts';
import { type MasterKey, openText } from '../../../platform/crypto/master-key.ts';
import { columnList, type Reads, readUpToDate } from '../../../queries/reads.ts';
import { fieldsOf } from '../../tables.ts';
import { ENDPOINT_COLUMNS, type EndpointRow } from './projection.ts';

/** What a partner is not shown of an endpoint. */
const HIDDEN = ['partner_id', 'secret', 'previous_secret', 'last_revision', 'last_position'] as const;
export type Endpoint = Omit<EndpointRow, (typeof HIDDEN)[number]>;
const endpoint = z.custom<Endpoint>();
const columns = columnList(fieldsOf(ENDPOINT_COLUMNS, HIDDEN));

/** A partner's endpoints, paused ones included, deleted ones left out. */
export const listEndpoints = (db: DatabasePool, partnerId: string): Promise<readonly Endpoint[]> =>
  db.any(sql.type(endpoint)`
    select ${columns} from read.webhook_endpoint
    where partner_id = ${partnerId} and deleted_at is null
    order by created_at, webhook_id`);

/** Finds one endpoint; a deleted one while its deliveries are shown. `now` in milliseconds. */
export async function findEndpoint(
  reads: Reads,
  partnerId: string,
  webhookId: string,
  now: number,
): Promise<Endpoint | null> {
  const row = await readUpToDate(reads, () =>
    reads.db.maybeOne(sql.type(endpoint)`
      select ${columns} from read.webhook_endpoint
      where webhook_id = ${webhookId} and partner_id = ${partnerId}`),
  );
  const isForgotten = row?.deleted_at && now >= Date.parse(row.deleted_at) + WEBHOOK_HISTORY_MS;
  return isForgotten ? null : row;
}

/** The sealed secrets of an endpoint. */
type SecretRow = Pick<EndpointRow, 'webhook_id' | 'secret' | 'previous_secret'> & {
  readonly secret_rotation_until: Date | null;
};

/** The keys that sign at `now` (milliseconds), newest first: two while a rotation's overlap runs; none once deleted. */
function signingSecrets(master: MasterKey, row: SecretRow, now: number): Buffer[] {
  const { webhook_id, secret, previous_secret, secret_rotation_until } = row;
  const overlaps = secret_rotation_until !== null && now < secret_rotation_until.getTime();
  return [secret, overlaps ? previous_secret : null].flatMap((sealed) =>
    sealed === null ? [] : [openText(master, sealed, webhook_id)],
  );
}

/** Lists endpoints, without deleted ones, that have a secret sealed under another master key. */
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

/** Creates the reader of URLs and signing keys; it leaves out paused and deleted endpoints. */
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
        // Without its target, this endpoint is sent nothing unsigned; the others are not affected.
        log.error({ webhook: row.webhook_id, error: String(error) }, 'a signing secret cannot be opened');
      }
    }
    return targets;
  };
