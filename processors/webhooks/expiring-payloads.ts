import type { EventOf } from '../../domain/kernel/events.ts';
import { PAYLOAD_PREFIX, payloadExpiryEvents } from '../../domain/webhooks/events.ts';
import type { Expiring } from '../expiry.ts';

/** Expires the payloads of webhook events together with their session. */
export const expiringPayloads: Expiring = {
  name: 'payloads',
  due: `
    select event_id as id, partner_id, '${PAYLOAD_PREFIX}' || event_id as stream, expires_at,
           expires_at::text as cursor, last_revision, false as lives, true as ready
    from read.webhook_payload
    where expires_at <= $1 and last_position <= $2 and $3::date is not null
      and (expires_at, event_id) > ($4::timestamptz, $5::text)
    order by expires_at, event_id limit $6`,
  overdue: `
    read.webhook_payload where expires_at <= $1 and $2::date is not null`,
  present: 'select event_id::text as id from read.webhook_payload where event_id = any ($1::text[])',
  schemas: payloadExpiryEvents,
  expiredEvent: (partner_id, events): EventOf<typeof payloadExpiryEvents> => ({
    type: 'webhooks.PayloadsExpired.v1',
    data: { partner_id, events },
  }),
};
