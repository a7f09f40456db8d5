import type pg from 'pg';
import { type DomainEvent, domainEvents } from '../../domain/domains/events.ts';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import type { Projection } from '../projection.ts';

/** Projects the current state of custom domains. Row by row, because these events are rare. */
export const domains: Projection = {
  name: 'domains',
  tables: ['domain', 'domain_owner', 'released_domain'],
  types: Object.keys(domainEvents),
  async apply(events, db) {
    for (const stored of events) {
      const event = readEvent(domainEvents, stored);
      if (!event) continue;
      const position = String(stored.position);
      await applyOne(event, position, db);
      if (!('domain_id' in event.data)) continue;
      const values = [event.data.domain_id, position];
      await db.query('update domain set changed_position = $2 where domain_id = $1', values);
    }
  },
};

async function applyOne({ type, data }: DomainEvent, position: string, db: pg.ClientBase): Promise<void> {
  switch (type) {
    case 'domains.DomainClaimed.v1':
      await db.query(
        `insert into domain (domain_id, hostname, tracker_id, partner_id, status, created_at)
         values ($1, $2, $3, $4, 'pending', $5)
         on conflict (domain_id) do update set status = 'pending', activated_at = null, last_error = null`,
        [data.domain_id, data.hostname, data.tracker_id, data.partner_id, data.claimed_at],
      );
      return;
    case 'domains.DomainLookChanged.v1':
      await db.query('update domain set last_error = $2 where domain_id = $1', [data.domain_id, data.error]);
      return;
    case 'domains.DomainActivated.v1':
      await db.query(
        `update domain set status = 'active', activated_at = $2, last_error = null where domain_id = $1`,
        [data.domain_id, data.activated_at],
      );
      await db.query(
        `insert into domain_owner (hostname, partner_id)
         select hostname, partner_id from domain where domain_id = $1 on conflict do nothing`,
        [data.domain_id],
      );
      return;
    case 'domains.DomainFailed.v1':
      await db.query(`update domain set status = 'failed', last_error = $2 where domain_id = $1`, [
        data.domain_id,
        data.error,
      ]);
      return;
    case 'domains.DomainReleased.v1':
      await db.query(
        `with gone as (delete from domain where domain_id = $1 returning domain_id)
         insert into released_domain (domain_id, changed_position) select domain_id, $2 from gone
         on conflict (domain_id) do update set changed_position = excluded.changed_position`,
        [data.domain_id, position],
      );
      return;
    case 'domains.NameSnapshotted.v1':
      return;
    default:
      unreachable(type);
  }
}
