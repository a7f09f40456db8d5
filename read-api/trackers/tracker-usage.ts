import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { iso } from '../../platform/clock/clock.ts';
import { readRevealHours } from '../../queries/billing/reveal-units.ts';
import type { Reads } from '../../queries/reads.ts';
import { type UtcRange, utcRange } from '../utc-range.ts';
import { type TrackerUsageBody, trackerUsageOperation } from './schemas.ts';

type Counts = TrackerUsageBody['totals'];

const ACCOUNTING =
  'capture_requests: requests of the pixel that were accepted, retries, crawlers and prefetches included. api_requests: ' +
  'previews, feed pages of this tracker, reveals and receipts that were answered with 200 or 202; refused calls, ' +
  'unfiltered feeds, usage and the dashboard are not counted. Counters are durable before the answer is sent; a count ' +
  'that is stored after its answer was refused is taken back. ' +
  'reveals and sessions count when they began, billable_reveals when they completed.';

const startRow = z.object({ created_at: z.string() });

/** GET /v1/trackers/{tracker_id}/usage: what happened on one tracker, deleted or not. */
export function trackerUsageRoute(deps: Reads): PartnerRoute {
  const route = partnerRoutes(deps, { bodyLimit: 0 });
  return route('GET', '/v1/trackers/:tracker_id/usage', 'none', trackerUsageOperation, read);
}

async function read({ db, waitForHead }: Reads, request: PartnerRequest): Promise<Reply> {
  const trackerId = uuidParam(request, 'tracker_id');
  if (trackerId === null) return refusal(request, 'invalid_tracker');
  const range = utcRange(request.query, request.receivedAt);
  if (range === null) return refusal(request, 'invalid_range');
  // Whatever answer the caller has received, from whichever process, is in what it reads now.
  if (!(await waitForHead())) return refusal(request, 'tracking_unavailable');
  const { partner_id } = request.caller;
  const tracker = await db.maybeOne(sql.type(startRow)`
    select created_at from read.tracker where tracker_id = ${trackerId} and partner_id = ${partner_id}`);
  if (tracker === null) return refusal(request, 'tracker_not_found');
  const [hourly, pending_reveals] = await Promise.all([
    readHours(db, trackerId, range),
    countPending(db, trackerId, iso(request.receivedAt)),
  ]);
  const body: TrackerUsageBody = {
    tracker_id: trackerId,
    ...range,
    timezone: 'UTC',
    totals: sumOf(hourly),
    hourly,
    pending_reveals,
    metrics_started_at: tracker.created_at,
    partial_history: range.from < tracker.created_at,
    accounting: ACCOUNTING,
    request_id: request.id,
  };
  return { status: 200, body: JSON.stringify(body) };
}

const hourRow = z.object({
  hour: z.string(),
  capture_requests: z.number(),
  sessions: z.number(),
  api_requests: z.number(),
  completed_responses: z.number(),
  company_responses: z.number(),
  reveals: z.number(),
});

/** By hour: what was counted, what began, and what was billed. */
async function readHours(
  db: DatabasePool,
  trackerId: string,
  { from, to }: UtcRange,
): Promise<TrackerUsageBody['hourly']> {
  const of = sql.fragment`tracker_id = ${trackerId} and hour >= ${from}::timestamptz and hour < ${to}::timestamptz`;
  const [counted, billed] = await Promise.all([
    db.any(sql.type(hourRow)`
      select hour, sum(capture_requests)::bigint as capture_requests, sum(sessions)::bigint as sessions,
             sum(api_requests)::bigint as api_requests, sum(completed_responses)::bigint as completed_responses,
             sum(company_responses)::bigint as company_responses, sum(reveals)::bigint as reveals
      from (select hour, capture_requests, 0 as sessions, api_requests, completed_responses, company_responses,
                   0 as reveals
            from read.tracker_calls_hour where ${of}
            union all
            select hour, 0, sessions, 0, 0, 0, reveals from read.tracker_hour where ${of}) n
      group by hour`),
    readRevealHours(db, { tracker_id: trackerId }, from, to),
  ]);
  const hours = new Map<string, Counts>(
    counted.map(({ hour, ...counts }) => [hour, { ...NOTHING, ...counts }]),
  );
  for (const { hour, billable_reveals } of billed) {
    if (billable_reveals > 0) hours.set(hour, { ...NOTHING, ...hours.get(hour), billable_reveals });
  }
  return [...hours].sort(([a], [b]) => (a < b ? -1 : 1)).map(([hour, counts]) => ({ hour, ...counts }));
}

/** Counts the pending reveals of a tracker that have not expired by `now` (ISO 8601). */
export const countPending = (db: DatabasePool, trackerId: string, now: string): Promise<number> =>
  db.oneFirst(sql.type(z.object({ pending: z.number() }))`
    select count(*)::int as pending from read.reveal
    where tracker_id = ${trackerId} and completed_at is null and expires_at > ${now}::timestamptz`);

const NOTHING: Counts = {
  capture_requests: 0,
  sessions: 0,
  api_requests: 0,
  completed_responses: 0,
  company_responses: 0,
  reveals: 0,
  billable_reveals: 0,
};

function sumOf(hourly: readonly Counts[]): Counts {
  const totals = { ...NOTHING };
  const names = Object.keys(totals) as (keyof Counts)[];
  for (const counts of hourly) for (const name of names) totals[name] += counts[name];
  return totals;
}
