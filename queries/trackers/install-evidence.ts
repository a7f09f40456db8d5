import type pg from 'pg';
import { DAY, HOUR, isoTime } from '../../domain/kernel/time.ts';
import {
  type CaptureRefusal,
  ENOUGH_TABS,
  EVIDENCE_KEPT_MS,
  type EvidenceKind,
  MAX_DETAILS,
} from '../../domain/sessions/install-evidence.ts';

/** Requests of one kind. */
interface Seen {
  /** In the last 24 hours. */
  readonly count: number;
  /** ISO 8601. */
  readonly last_at: string;
}

/** An origin or a host that was refused. */
interface SeenDetail {
  readonly name: string;
  readonly last_at: string;
}

/** What arrived of a tracker's pixel in 7 days; at most 10 s late. */
export interface InstallEvidence {
  /** By UTC hour (ISO 8601), 24 of them up to this one. */
  readonly hours: readonly { readonly hour: string; readonly visits: number }[];
  readonly visits: Seen | null;
  /** Fetches of the pixel's script. */
  readonly scripts: Seen | null;
  readonly crawlers: Seen | null;
  /** Pages that a browser fetched ahead. */
  readonly prefetches: Seen | null;
  readonly refusals: readonly (Seen & { readonly reason: CaptureRefusal })[];
  /** Newest first. */
  readonly origins: readonly SeenDetail[];
  readonly hosts: readonly SeenDetail[];
  /** Whether so many tabs were seen that their addresses say something. */
  readonly hasEnoughTabs: boolean;
  readonly hasManyAddresses: boolean;
  readonly hasPublicAddress: boolean;
}

interface Row {
  readonly kind: EvidenceKind;
  readonly detail: string;
  /** -Infinity where detail is given. */
  readonly hour: Date | number;
  readonly seen: number;
  readonly last_at: Date;
  readonly tabs: number;
  readonly many_addresses: boolean;
  readonly public_address: boolean;
}

/** Reads the evidence of a tracker: at most 170 hours of each kind. `now` in milliseconds. */
export async function readInstallEvidence(
  pool: pg.Pool,
  trackerId: string,
  now: number,
): Promise<InstallEvidence> {
  const { rows } = await pool.query<Row>({
    name: 'install_evidence',
    text: `select kind, detail, hour, seen, last_at, tabs, many_addresses, public_address
           from work.install_evidence where tracker_id = $1 and last_at > $2`,
    values: [trackerId, new Date(now - EVIDENCE_KEPT_MS)],
  });
  return evidenceIn(rows, now);
}

interface EvidenceOfTracker extends InstallEvidence {
  readonly lastVisitHour: string | null;
}

/**
 * Reads the evidence of several trackers, as far as a judgement of the last 24 hours needs it: without the hours before, and all visits
 * of the day in its first hour. `now` in milliseconds.
 */
export async function readInstallEvidenceOf(
  pool: pg.Pool,
  trackerIds: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, EvidenceOfTracker>> {
  const first = firstHour(now);
  const [seen, visits] = await Promise.all([
    pool.query<Row & { readonly tracker_id: string }>({
      name: 'install_evidence_of',
      text: `select tracker_id, kind, detail, $3::timestamptz as hour, sum(seen)::float8 as seen, max(last_at) as last_at,
                    max(tabs) as tabs, bool_or(many_addresses) as many_addresses, bool_or(public_address) as public_address
             from work.install_evidence
             where tracker_id = any ($1) and last_at > $2 and (detail <> '' or hour >= $3)
             group by tracker_id, kind, detail`,
      values: [trackerIds, new Date(now - EVIDENCE_KEPT_MS), new Date(first)],
    }),
    pool.query<{ readonly tracker_id: string; readonly hour: Date }>({
      name: 'last_visit_hours',
      text: `select t.tracker_id, h.hour from unnest($1::uuid[]) as t (tracker_id)
             cross join lateral (
               select hour from read.tracker_hour h where h.tracker_id = t.tracker_id and h.sessions > 0
               order by h.tracker_id, h.hour desc limit 1) h`,
      values: [trackerIds],
    }),
  ]);
  const rows = Map.groupBy(seen.rows, ({ tracker_id }) => tracker_id);
  const hours = new Map(visits.rows.map(({ tracker_id, hour }) => [tracker_id, hour.toISOString()]));
  return new Map(
    trackerIds.map((id) => [
      id,
      { ...evidenceIn(rows.get(id) ?? [], now), lastVisitHour: hours.get(id) ?? null },
    ]),
  );
}

/** The start of the first of 24 hours up to this one, milliseconds. */
const firstHour = (now: number): number => now - (now % HOUR) - (DAY - HOUR);

function evidenceIn(rows: readonly Row[], now: number): InstallEvidence {
  const first = firstHour(now);
  const ofDay = rows.filter(({ hour, detail }) => detail === '' && Number(hour) >= first);
  const lastOf = (some: readonly Row[]): string =>
    isoTime(Math.max(...some.map(({ last_at }) => Math.min(last_at.getTime(), now))));
  const seenOf = (kind: EvidenceKind): Seen | null => {
    const all = rows.filter((row) => row.kind === kind && row.detail === '');
    return all.length === 0 ? null : { count: sumOf(ofDay, kind), last_at: lastOf(all) };
  };
  const detailsOf = (kind: EvidenceKind): SeenDetail[] =>
    rows
      .filter((row) => row.kind === kind && row.detail !== '')
      .toSorted((one, other) => other.last_at.getTime() - one.last_at.getTime())
      .slice(0, MAX_DETAILS)
      .map((row) => ({ name: row.detail, last_at: lastOf([row]) }));
  const visits = ofDay.filter(({ kind }) => kind === 'visit');
  return {
    hours: Array.from({ length: DAY / HOUR }, (_, index) => {
      const at = first + index * HOUR;
      return {
        hour: isoTime(at),
        visits: sumOf(
          visits.filter(({ hour }) => Number(hour) === at),
          'visit',
        ),
      };
    }),
    visits: seenOf('visit'),
    scripts: seenOf('script'),
    crawlers: seenOf('crawler'),
    prefetches: seenOf('prefetch'),
    refusals: REFUSALS.flatMap((reason) => {
      const seen = seenOf(reason);
      return seen === null ? [] : [{ reason, ...seen }];
    }),
    origins: detailsOf('wrong_origin'),
    hosts: detailsOf('untrusted_host'),
    hasEnoughTabs: visits.some(({ tabs }) => tabs >= ENOUGH_TABS),
    hasManyAddresses: visits.some(({ many_addresses }) => many_addresses),
    hasPublicAddress: visits.some(({ public_address }) => public_address),
  };
}

const REFUSALS: readonly CaptureRefusal[] = [
  'disabled',
  'deleted',
  'wrong_origin',
  'untrusted_host',
  'invalid_labels',
  'invalid_body',
  'rate',
  'unavailable',
];

const sumOf = (rows: readonly Row[], kind: EvidenceKind): number =>
  rows.reduce((sum, row) => (row.kind === kind ? sum + row.seen : sum), 0);

/** Returns the hour (ISO 8601) in which the tracker's newest session began, as far back as usage is kept (400 days); null: none did. */
export async function readLastVisitHour(pool: pg.Pool, trackerId: string): Promise<string | null> {
  const { rows } = await pool.query<{ hour: Date }>({
    name: 'last_visit_hour',
    text: `select hour from read.tracker_hour where tracker_id = $1 and sessions > 0
           order by tracker_id, hour desc limit 1`,
    values: [trackerId],
  });
  return rows[0]?.hour.toISOString() ?? null;
}
