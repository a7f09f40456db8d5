import { NIL } from 'uuid';
import type { EventOf } from '../../domain/kernel/events.ts';
import { sessionExpiryEvents, TAB_PREFIX } from '../../domain/sessions/events.ts';
import { type Expiring, expiredItems } from '../expiry.ts';

/**
 * Sessions of a tab that are read to find its last event and its unexpired sessions. A visitor may begin any number of sessions in
 * one tab. Where one that began before all of these was visited last, `retireStream` finds that the stream has grown, and waits.
 */
const NEWEST = 64;

const DUE = expiredItems({
  table: 'read.session',
  id: 'session_id',
  idType: 'uuid',
  columns: `i.stream,
      i.last_position <= $2 and i.first_seen_at < $3::date::timestamp at time zone 'UTC' as passed`,
});

/**
 * Expires sessions. A tab's sessions share its stream: it is truncated behind expired ones and deleted with the last. Each
 * stream is looked at once, and no further than its newest sessions.
 */
export const expiringSessions: Expiring = {
  name: 'sessions',
  prefix: TAB_PREFIX,
  firstId: NIL,
  table: 'read.session',
  due: `
    with due as materialized (${DUE}),
         tab as materialized (
           select o.stream, newest.*, expired.*
           from (select distinct stream from due) o
           cross join lateral (
             select max(n.last_revision) as last_revision, bool_or(n.expires_at > $1) as lives
             from (select s.last_revision, s.expires_at from read.session s
                   where s.stream = o.stream order by s.expires_at desc limit ${NEWEST}) n) newest
           cross join lateral (
             select bool_and(n.last_position <= $2 and n.first_seen_at < $3::date::timestamp at time zone 'UTC') as ready
             from (select s.last_position, s.first_seen_at from read.session s
                   where s.stream = o.stream and s.expires_at <= $1 order by s.expires_at desc limit ${NEWEST}) n) expired)
    select d.*, t.last_revision, t.lives, d.passed and t.ready as ready
    from due d join tab t using (stream)
    order by d.expires_at, d.id`,
  counted: `first_seen_at < $2::date::timestamp at time zone 'UTC'`,
  present: 'select session_id::text as id from read.session where session_id = any ($1::uuid[])',
  schemas: sessionExpiryEvents,
  expiredEvent: (partner_id, sessions): EventOf<typeof sessionExpiryEvents> => ({
    type: 'sessions.SessionsExpired.v1',
    data: { partner_id, sessions },
  }),
};
