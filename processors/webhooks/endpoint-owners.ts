import { LRUCache } from 'lru-cache';
import type pg from 'pg';

export interface OwnedEndpoints {
  /** Notes whose an endpoint is. */
  note(webhookId: string, partnerId: string): void;
  /** Schedules an endpoint under its partner: at once if that is known, else once it is read; not if there is no such endpoint. */
  schedule(webhookId: string, at: number): void;
}

export interface OwnedEndpointsOptions {
  readonly pool: pg.Pool;
  readonly schedule: (webhookId: string, partnerId: string, at: number) => void;
  /** Called when partners cannot be read: the endpoints are to be found otherwise. */
  readonly onFailure: () => void;
}

const REMEMBERED = 20_000;

/**
 * Finds the partners of endpoints that notifications name. The notifications do not say, because any database user may notify: a
 * wrong partner would have all endpoints share the attempts of one.
 */
export const createOwnedEndpoints = ({
  pool,
  schedule,
  onFailure,
}: OwnedEndpointsOptions): OwnedEndpoints => {
  const partners = new LRUCache<string, string>({ max: REMEMBERED });
  /** Times of endpoints whose partners are to be read. */
  let unread = new Map<string, number>();
  let isReading = false;

  const readAll = async (): Promise<void> => {
    isReading = true;
    try {
      while (unread.size > 0) {
        const asked = unread;
        unread = new Map();
        const { rows } = await pool.query<{ webhook_id: string; partner_id: string }>({
          name: 'partners_of_endpoints',
          text: 'select webhook_id, partner_id from read.webhook_health where webhook_id = any ($1)',
          values: [[...asked.keys()]],
        });
        for (const { webhook_id, partner_id } of rows) {
          partners.set(webhook_id, partner_id);
          schedule(webhook_id, partner_id, asked.get(webhook_id) ?? 0);
        }
      }
    } catch {
      unread.clear();
      onFailure();
    } finally {
      isReading = false;
    }
  };

  return {
    note: (webhookId, partnerId) => void partners.set(webhookId, partnerId),
    schedule: (webhookId, at) => {
      const partnerId = partners.get(webhookId);
      if (partnerId !== undefined) return schedule(webhookId, partnerId, at);
      unread.set(webhookId, Math.min(at, unread.get(webhookId) ?? at));
      if (!isReading) void readAll();
    },
  };
};
