import type { EventOf } from '../../domain/kernel/events.ts';
import { sessionExpiryEvents } from '../../domain/sessions/events.ts';
import type { Expiring } from '../expiry.ts';

/** Expires sessions. A tab's sessions share its stream: it is truncated behind expired ones and deleted with the last. */
export const expiringSessions: Expiring = {
  name: 'sessions',
  due: `
    select d.*, t.*
    from (select session_id as id, partner_id, stream, expires_at, expires_at::text as cursor
          from read.session
          where expires_at <= $1 and last_position <= $2 and first_seen_at < $3::date::timestamp at time zone 'UTC'
            and (expires_at, session_id) > ($4::timestamptz, $5::uuid)
          order by expires_at, session_id limit $6) d
    cross join lateral (
      select max(s.last_revision) as last_revision, bool_or(s.expires_at > $1) as lives,
             bool_and(s.expires_at > $1 or s.last_position <= $2
                      and s.first_seen_at < $3::date::timestamp at time zone 'UTC') as ready
      from read.session s where s.stream = d.stream) t
    order by d.expires_at, d.id`,
  overdue: `
    select count(*)::int as rows, min(expires_at) as oldest, min(last_position) as first_position
    from read.session where expires_at <= $1 and first_seen_at < $2::date::timestamp at time zone 'UTC'`,
  present: 'select session_id::text as id from read.session where session_id = any ($1::uuid[])',
  schemas: sessionExpiryEvents,
  expiredEvent: (partner_id, sessions): EventOf<typeof sessionExpiryEvents> => ({
    type: 'sessions.SessionsExpired.v1',
    data: { partner_id, sessions },
  }),
};
