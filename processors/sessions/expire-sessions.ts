import { NIL } from 'uuid';
import type { EventOf } from '../../domain/kernel/events.ts';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { expiredStream, sessionExpiryEvents, TAB_PREFIX } from '../../domain/sessions/events.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';
import type { ProcessorDeps } from '../deps.ts';
import { type Expiring, expiredItems } from '../expiry.ts';

/**
 * Sessions of a tab that are read to find its last event and its unexpired sessions. A visitor may begin any number of sessions in
 * one tab. Where one that began before all of these was visited last, `retireStream` finds that the stream has grown, and waits.
 */
const MAX_SESSIONS_READ = 64;

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
                   where s.stream = o.stream order by s.expires_at desc limit ${MAX_SESSIONS_READ}) n) newest
           cross join lateral (
             select bool_and(n.last_position <= $2 and n.first_seen_at < $3::date::timestamp at time zone 'UTC') as ready
             from (select s.last_position, s.first_seen_at from read.session s
                   where s.stream = o.stream and s.expires_at <= $1 order by s.expires_at desc limit ${MAX_SESSIONS_READ}) n) expired)
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

interface DeleteExpiredStreamsOptions extends ProcessorDeps {
  readonly consumers: Consumers;
}

/** How long the API answers that an id has expired. */
const EXPIRED_ID_DAYS = 60;

/**
 * Deletes the streams of expiry events that are older than 60 days. `forget` drops their rows from the read models; until
 * then a repeated run finds the streams again.
 */
export async function deleteExpiredStreams(
  { store, pool, clock, consumers }: DeleteExpiredStreamsOptions,
  forget: (before: string) => Promise<void>,
): Promise<void> {
  // Everything swept on a day had expired by the end of that day.
  const before = utcDay(clock.now() - EXPIRED_ID_DAYS * DAY);
  const consumerProgress = createConsumerProgress(pool, consumers);
  const { signal } = new AbortController();
  const { rows } = await pool.query<{ partner_id: string; day: string }>(
    `${daysIn('read.expired_session')} union ${daysIn('read.expired_reveal')}`,
    [before],
  );
  for (const { partner_id, day } of rows) {
    const stream = expiredStream(partner_id, day);
    for await (const last of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
      if (!(await consumerProgress.waitFor(last.position, signal)))
        throw new Error(`${stream} has not been read by all consumers`);
      await store.expire(stream, last.revision);
    }
  }
  await forget(before);
}

/** Selects the days before `$1` and their partners by steps along the index, because a day may have millions of ids. */
const daysIn = (table: 'read.expired_session' | 'read.expired_reveal'): string => `(
  with recursive known as (
    (select day, partner_id from ${table} where day < $1::date order by day, partner_id limit 1)
    union all
    select next.* from known, lateral (
      select t.day, t.partner_id from ${table} t
      where (t.day, t.partner_id) > (known.day, known.partner_id) and t.day < $1::date
      order by t.day, t.partner_id limit 1) next)
  select partner_id, day::text from known)`;
