import { NIL } from 'uuid';
import type { EventOf } from '../../domain/kernel/events.ts';
import { REVEAL_PREFIX, revealExpiryEvents } from '../../domain/reveals/events.ts';
import { type Expiring, expiredItems } from '../expiry.ts';

/** Expires reveals. Each has a stream of its own, so the whole stream is deleted. */
export const expiringReveals: Expiring = {
  name: 'reveals',
  prefix: REVEAL_PREFIX,
  firstId: NIL,
  table: 'read.reveal',
  due: expiredItems({
    table: 'read.reveal',
    id: 'reveal_id',
    idType: 'uuid',
    columns: `'${REVEAL_PREFIX}' || i.reveal_id as stream, i.last_revision, false as lives,
      i.last_position <= $2 and i.created_at < $3::date::timestamp at time zone 'UTC' as ready`,
  }),
  counted: `created_at < $2::date::timestamp at time zone 'UTC'`,
  present: 'select reveal_id::text as id from read.reveal where reveal_id = any ($1::uuid[])',
  schemas: revealExpiryEvents,
  expiredEvent: (partner_id, reveals): EventOf<typeof revealExpiryEvents> => ({
    type: 'reveals.RevealsExpired.v1',
    data: { partner_id, reveals },
  }),
};
