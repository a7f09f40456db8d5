import type { EventOf } from '../../domain/kernel/events.ts';
import { sessionExpiryEvents } from '../../domain/sessions/events.ts';
import type { Expiring } from '../expiry.ts';

/**
 * Expires sessions. A tab's sessions share its stream: it is truncated behind expired ones and deleted with the last. Each
 * stream is looked at once, because a visitor may begin hundreds of thousands of sessions in one tab.
 */
export const expiringSessions: Expiring = {
  name: 'sessions',
  due: `
    with due as materialized (
           select session_id as id, partner_id, stream, expires_at, expires_at::text as cursor
           from read.session
           where expires_at <= $1 and last_position <= $2 and first_seen_at < $3::date::timestamp at time zone 'UTC'
             and (expires_at, session_id) > ($4::timestamptz, $5::uuid)
           order by expires_at, session_id limit $6),
         tab as materialized (
           select o.stream,
                  exists (select from read.session s where s.stream = o.stream and s.expires_at > $1) as lives,
                  not exists (
                    select from read.session s where s.stream = o.stream and s.expires_at <= $1
                      and not (s.last_position <= $2 and s.first_seen_at < $3::date::timestamp at time zone 'UTC')) as ready
           from (select distinct stream from due) o),
         ended as materialized (
           select t.stream, (select max(s.last_revision) from read.session s where s.stream = t.stream) as last_revision
           from tab t where not t.lives)
    select d.*, coalesce(e.last_revision, -1) as last_revision, t.lives, t.ready
    from due d join tab t using (stream) left join ended e using (stream)
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
