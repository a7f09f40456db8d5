import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { DAY, isoTime } from '../../domain/kernel/time.ts';

const activityRow = z.object({
  /** bigint as text. */
  position: z.string(),
  at: z.string(),
  actor_kind: z.enum(['key', 'user', 'operator', 'service']),
  actor_id: z.string(),
  /** Name of the key or the user; null: it is not known any more. */
  actor_name: z.string().nullable(),
  action: z.string(),
  subject_kind: z.string(),
  subject_id: z.string(),
  subject_name: z.string().nullable(),
  summary: z.string(),
});
export type ActivityRow = z.output<typeof activityRow>;

export interface ActivityQuery {
  readonly partnerId: string;
  /** null: any. */
  readonly actor: { readonly kind: string; readonly id: string } | null;
  readonly subjectKind: string | null;
  /** Milliseconds, inclusive; null: as far back as it is kept. */
  readonly since: number | null;
  /** Milliseconds, exclusive. */
  readonly until: number | null;
  /** The last row of the page before. */
  readonly before: { readonly at: string; readonly position: string } | null;
  readonly limit: number;
  /** Milliseconds. */
  readonly now: number;
}

const KEPT_MS = 400 * DAY;

/** Lists who did what, the newest first. An index serves each filter and both together. */
export function listActivity(db: DatabasePool, query: ActivityQuery): Promise<readonly ActivityRow[]> {
  const { partnerId, actor, subjectKind, since, until, before, limit, now } = query;
  const instant = (at: number) => sql.fragment`${isoTime(at)}::timestamptz`;
  const conditions = [
    sql.fragment`partner_id = ${partnerId}`,
    sql.fragment`at >= ${instant(Math.max(since ?? 0, now - KEPT_MS))}`,
    ...(actor === null ? [] : [sql.fragment`actor_kind = ${actor.kind} and actor_id = ${actor.id}`]),
    ...(subjectKind === null ? [] : [sql.fragment`subject_kind = ${subjectKind}`]),
    ...(until === null ? [] : [sql.fragment`at < ${instant(until)}`]),
    ...(before === null
      ? []
      : [sql.fragment`(at, position) < (${before.at}::timestamptz, ${before.position}::bigint)`]),
  ];
  return db.any(sql.type(activityRow)`
    select a.position::text as position, a.at, a.actor_kind, a.actor_id, a.action, a.subject_kind, a.subject_id, a.summary,
           case a.actor_kind
             when 'key' then (select k.name from read.api_key k where k.key_id = a.actor_id)
             when 'user' then (select u.name from read.user_account u where u.user_id = a.actor_id::uuid)
           end as actor_name,
           case a.subject_kind
             when 'key' then (select k.name from read.api_key k where k.key_id = a.subject_id)
             when 'user' then (select u.name from read.user_account u where u.user_id = a.subject_id::uuid)
             when 'tracker' then (select t.name from read.tracker t where t.tracker_id = a.subject_id::uuid)
             when 'webhook' then (select e.name from read.webhook_endpoint e where e.webhook_id = a.subject_id::uuid)
           end as subject_name
    from (
      select * from read.activity where ${sql.join(conditions, sql.fragment` and `)}
      order by at desc, position desc limit ${limit}) a
    order by a.at desc, a.position desc`);
}
