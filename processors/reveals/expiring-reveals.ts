import type { EventOf } from '../../domain/kernel/events.ts';
import { REVEAL_PREFIX, revealExpiryEvents } from '../../domain/reveals/events.ts';
import type { Expiring } from '../expiry.ts';

/** Expires reveals. Each has a stream of its own, so the whole stream is deleted. */
export const expiringReveals: Expiring = {
  name: 'reveals',
  due: `
    select reveal_id as id, partner_id, '${REVEAL_PREFIX}' || reveal_id as stream, expires_at, expires_at::text as cursor,
           last_revision, false as lives, true as ready
    from read.reveal
    where expires_at <= $1 and last_position <= $2 and created_at < $3::date::timestamp at time zone 'UTC'
      and (expires_at, reveal_id) > ($4::timestamptz, $5::uuid)
    order by expires_at, reveal_id limit $6`,
  overdue: `
    read.reveal where expires_at <= $1 and created_at < $2::date::timestamp at time zone 'UTC'`,
  present: 'select reveal_id::text as id from read.reveal where reveal_id = any ($1::uuid[])',
  schemas: revealExpiryEvents,
  expiredEvent: (partner_id, reveals): EventOf<typeof revealExpiryEvents> => ({
    type: 'reveals.RevealsExpired.v1',
    data: { partner_id, reveals },
  }),
};
