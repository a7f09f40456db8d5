import type pg from 'pg';
import type { Logger } from 'pino';
import type { Clock } from '../../platform/clock.ts';
import type { MasterKey } from '../../platform/master-key.ts';
import { type SecretRow, signingSecrets } from './secrets.ts';

export interface TargetsDeps {
  readonly pool: pg.Pool;
  readonly master: MasterKey;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Where endpoints take their events just now, and what signs them; what takes none is left out. */
export const createTargets =
  ({ pool, master, clock, log }: TargetsDeps) =>
  async (
    webhookIds: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly url: string; readonly secrets: readonly Buffer[] }>> => {
    const { rows } = await pool.query<SecretRow & { readonly url: string }>({
      name: 'webhook_targets',
      text: `select webhook_id, url, secret, previous_secret, secret_rotation_until
             from read.webhook_endpoint where webhook_id = any ($1) and enabled and deleted_at is null`,
      values: [webhookIds],
    });
    const targets = new Map<string, { readonly url: string; readonly secrets: readonly Buffer[] }>();
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
