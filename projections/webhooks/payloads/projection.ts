import type pg from 'pg';
import { readEvent } from '../../../domain/kernel/events.ts';
import { payloadEvents, payloadExpiryEvents } from '../../../domain/webhooks/events.ts';
import type { Projection } from '../../projection.ts';

/** Projects bodies of webhook events, and how many bytes each partner has stored. */
export const payloads: Projection = {
  name: 'payloads',
  tables: ['webhook_payload', 'webhook_retained'],
  types: Object.keys({ ...payloadEvents, ...payloadExpiryEvents }),
  async apply(events, db) {
    const stored: object[] = [];
    const expired: string[] = [];
    for (const recorded of events) {
      const event = readEvent(payloadEvents, recorded);
      if (event) {
        stored.push({
          ...event.data,
          last_revision: recorded.revision,
          last_position: String(recorded.position),
        });
      }
      const gone = readEvent(payloadExpiryEvents, recorded);
      for (const [event_id] of gone?.data.events ?? []) expired.push(event_id);
    }
    if (stored.length > 0)
      await db.query({ name: 'store_payloads', text: STORE, values: [JSON.stringify(stored)] });
    if (expired.length > 0) await forget(db, expired);
  },
};

const STORE = `
  with stored as (
    insert into webhook_payload (event_id, partner_id, type, day, sealed, bytes, created_at, expires_at, last_revision,
                                 last_position)
    select event_id, partner_id, type, day, decode(sealed, 'base64'), bytes, created_at, expires_at, last_revision,
           last_position
    from json_to_recordset($1) as s (event_id text, partner_id uuid, type text, day date, sealed text, bytes integer,
      created_at timestamptz, expires_at timestamptz, last_revision integer, last_position bigint)
    on conflict (event_id) do nothing
    returning partner_id, expires_at, bytes)
  insert into webhook_retained as known (partner_id, day, bytes)
  select partner_id, (expires_at at time zone 'UTC')::date, sum(bytes) from stored group by 1, 2 order by 1, 2
  on conflict (partner_id, day) do update set bytes = known.bytes + excluded.bytes`;

/** Deletes bodies, and the partner's total of a day with the day's last body. */
async function forget(db: pg.ClientBase, expired: readonly string[]): Promise<void> {
  await db.query({
    name: 'forget_payloads',
    text: `with gone as (
             delete from webhook_payload where event_id = any ($1)
             returning partner_id, (expires_at at time zone 'UTC')::date as day, bytes)
           update webhook_retained r set bytes = r.bytes - g.bytes
           from (select partner_id, day, sum(bytes) as bytes from gone group by 1, 2) g
           where r.partner_id = g.partner_id and r.day = g.day`,
    values: [expired],
  });
  await db.query('delete from webhook_retained where bytes <= 0');
}
