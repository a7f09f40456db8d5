import type { EventOf } from '../../domain/kernel/events.ts';
import { PAYLOAD_PREFIX, payloadExpiryEvents } from '../../domain/webhooks/events.ts';
import { type Expiring, expiredItems } from '../expiry.ts';

/** Expires the payloads of webhook events together with their session. */
export const expiringPayloads: Expiring = {
  name: 'payloads',
  prefix: PAYLOAD_PREFIX,
  firstId: '',
  table: 'read.webhook_payload',
  due: expiredItems({
    table: 'read.webhook_payload',
    id: 'event_id',
    idType: 'text',
    columns: `'${PAYLOAD_PREFIX}' || i.event_id as stream, i.last_revision, false as lives,
      i.last_position <= $2 and $3::date is not null as ready`,
  }),
  counted: '$2::date is not null',
  present: 'select event_id::text as id from read.webhook_payload where event_id = any ($1::text[])',
  schemas: payloadExpiryEvents,
  expiredEvent: (partner_id, events): EventOf<typeof payloadExpiryEvents> => ({
    type: 'webhooks.PayloadsExpired.v1',
    data: { partner_id, events },
  }),
};
