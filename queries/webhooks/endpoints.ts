import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { subscribableSchema, WEBHOOK_HISTORY_MS } from '../../domain/webhooks/events.ts';
import { BackendTimeout } from '../../http/errors/failures.ts';

const endpointRow = z.object({
  webhook_id: z.string(),
  name: z.string(),
  url: z.string(),
  events: z.array(subscribableSchema),
  tracker_id: z.string().nullable(),
  enabled: z.boolean(),
  created_at: z.string(),
  updated_at: z.string(),
  deleted_at: z.string().nullable(),
  secret_rotation_until: z.string().nullable(),
});
export type EndpointRow = z.output<typeof endpointRow>;

const columns = sql.fragment`
  webhook_id, name, url, events, tracker_id, enabled, created_at, updated_at, deleted_at, secret_rotation_until`;

/** A partner's endpoints, paused ones included, deleted ones left out. */
export const listEndpoints = (db: DatabasePool, partnerId: string): Promise<readonly EndpointRow[]> =>
  db.any(sql.type(endpointRow)`
    select ${columns} from read.webhook_endpoint
    where partner_id = ${partnerId} and deleted_at is null
    order by created_at, webhook_id`);

export interface EndpointReads {
  readonly db: DatabasePool;
  /** Waits until the read models have all that the store has now; false after the time limit. */
  readonly caughtUp: () => Promise<boolean>;
}

/**
 * Finds one endpoint; a deleted one while its deliveries are shown. `now` in milliseconds.
 * @throws BackendTimeout rather than call unknown what may be there
 */
export const findEndpoint = async (
  { db, caughtUp }: EndpointReads,
  partnerId: string,
  webhookId: string,
  now: number,
): Promise<EndpointRow | null> => {
  const read = () =>
    db.maybeOne(sql.type(endpointRow)`
      select ${columns} from read.webhook_endpoint
      where webhook_id = ${webhookId} and partner_id = ${partnerId}`);
  let row = await read();
  if (row === null) {
    if (!(await caughtUp())) throw new BackendTimeout('the read models are behind');
    row = await read();
  }
  const isForgotten = row?.deleted_at && now >= Date.parse(row.deleted_at) + WEBHOOK_HISTORY_MS;
  return isForgotten ? null : row;
};
