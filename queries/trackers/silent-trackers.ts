/** Trackers whose visits have stopped. */
import type pg from 'pg';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';

/** The visits of a tracker before it fell silent. */
export interface LastVisits {
  /** Milliseconds. */
  readonly lastAt: number;
  /** UTC days (`YYYY-MM-DD`) with visits: of the eight up to the last visit's. */
  readonly days: readonly string[];
}

const SILENT_MS = DAY;
const DAYS_BEFORE = 7;
const MIN_DAYS_WITH_VISITS = 3;

/**
 * Returns whether a tracker that used to have visits has had none for a day. Only the parts of those days count whose same weekday a
 * week before had visits, since sites of businesses are silent at weekends. `now` in milliseconds.
 */
export function isSilent({ lastAt, days }: LastVisits, now: number): boolean {
  const lastDay = lastAt - (lastAt % DAY);
  const daysBefore = Array.from({ length: DAYS_BEFORE }, (_, n) => utcDay(lastDay - n * DAY));
  if (daysBefore.filter((day) => days.includes(day)).length < MIN_DAYS_WITH_VISITS) return false;
  let silentMs = 0;
  // A week after the last visit no day counts any more.
  for (let day = lastDay; day <= lastDay + 7 * DAY; day += DAY) {
    if (!days.includes(utcDay(day - 7 * DAY))) continue;
    silentMs += Math.max(0, Math.min(now, day + DAY) - Math.max(lastAt, day));
  }
  return silentMs >= SILENT_MS;
}

export interface SilentTracker {
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly last_visit_at: string;
  /** The UTC hour in which its last session began: names the silence, also when the session has expired. */
  readonly last_session_hour: string;
}

/** A visit that begins no session may come after the last session began, in one of as many sessions before it. */
const SESSIONS_LOOKED_AT = 100;

/**
 * Lists the trackers, neither disabled nor deleted nor of a suspended partner, whose visits have stopped (`isSilent`): of one partner,
 * or (null) of all. Reads a few rows of each tracker. `now` in milliseconds.
 */
export async function listSilentTrackers(
  pool: pg.Pool,
  partnerId: string | null,
  now: number,
): Promise<SilentTracker[]> {
  const { rows } = await pool.query<{
    tracker_id: string;
    partner_id: string;
    name: string;
    hour: Date;
    last_at: Date;
    days: readonly string[];
  }>(
    `select t.tracker_id, t.partner_id, t.name, began.hour, seen.last_at, array(
              select ((seen.last_at at time zone 'UTC')::date - n)::text
              from generate_series(0, 7) n
              where n = 0 or exists (
                select from read.tracker_hour h
                where h.tracker_id = t.tracker_id and h.sessions > 0
                  and h.hour >= date_trunc('day', seen.last_at, 'UTC') - n * interval '24 hours'
                  and h.hour < date_trunc('day', seen.last_at, 'UTC') - (n - 1) * interval '24 hours')) as days
     from read.tracker t
     join read.partner p on p.partner_id = t.partner_id and p.suspended_at is null
     cross join lateral (
       select h.hour from read.tracker_hour h
       where h.tracker_id = t.tracker_id and h.sessions > 0 order by h.hour desc limit 1) began
     cross join lateral (
       select greatest(began.hour, max(s.last_seen_at)) as last_at
       from (select last_seen_at from read.session
             where tracker_id = t.tracker_id order by position desc limit ${SESSIONS_LOOKED_AT}) s) seen
     where t.disabled_at is null and t.deleted_at is null and began.hour <= $1 and seen.last_at <= $1
       ${partnerId === null ? '' : 'and t.partner_id = $2'}
     order by t.partner_id, t.created_at, t.tracker_id`,
    [new Date(now - SILENT_MS), ...(partnerId === null ? [] : [partnerId])],
  );
  return rows
    .filter(({ last_at, days }) => isSilent({ lastAt: last_at.getTime(), days }, now))
    .map(({ tracker_id, partner_id, name, hour, last_at }) => ({
      tracker_id,
      partner_id,
      name,
      last_visit_at: isoTime(last_at.getTime()),
      last_session_hour: isoTime(hour.getTime()),
    }));
}
