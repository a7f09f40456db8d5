import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

/** The outcomes that `GET /v1/usage` counts by (spec, Usage). */
export const outcomeSchema = z.enum([
  'company',
  'isp',
  'unclassified',
  'enqueued',
  'pending',
  'retrying',
  'invalid_request',
  'rate_limited',
  'error',
]);
export type Outcome = z.output<typeof outcomeSchema>;

/** Key, hour (UTC, `YYYY-MM-DDTHH`), outcome, requests, cache hits, microseconds in all. */
const count = z.tuple([z.string(), z.string(), outcomeSchema, z.int(), z.int(), z.int()]);
export type LookupCount = z.output<typeof count>;

/** The sum of two counts of the same key, hour and outcome. */
export const plus = (sum: LookupCount | undefined, row: LookupCount): LookupCount =>
  sum ? [sum[0], sum[1], sum[2], sum[3] + row[3], sum[4] + row[4], sum[5] + row[5]] : row;

/** What a correction adds to the sum. */
export const negated = ([key, hour, outcome, requests, hits, us]: LookupCount): LookupCount => [
  key,
  hour,
  outcome,
  -requests,
  -hits,
  -us,
];

/** Tracker, hour, capture requests, successful API requests, those that were complete, those that told a company. */
const trackerCalls = z.tuple([z.uuid(), z.string(), z.int(), z.int(), z.int(), z.int()]);
export type TrackerCalls = z.output<typeof trackerCalls>;

/** The sum of two counts of the same tracker and hour. */
export const plusCalls = (sum: TrackerCalls | undefined, row: TrackerCalls): TrackerCalls =>
  sum ? [sum[0], sum[1], sum[2] + row[2], sum[3] + row[3], sum[4] + row[4], sum[5] + row[5]] : row;

/** What a correction adds to the sum. */
export const negatedCalls = ([
  tracker,
  hour,
  captures,
  api,
  completed,
  company,
]: TrackerCalls): TrackerCalls => [tracker, hour, -captures, -api, -completed, -company];

/** Tracker, hour, new sessions, new reveals. */
const trackerHour = z.tuple([z.uuid(), z.string(), z.int(), z.int()]);
export type TrackerHour = z.output<typeof trackerHour>;

/** Stream `usage-<boot id>-<utc day>`: what one process answered on one day, of one kind of answers. */
export const usageEvents = {
  'usage.LookupsCounted.v1': z.object({ counts: z.array(count) }),
  /**
   * Answers that were counted before it in the stream and then not sent, as their count was not known to be durable in
   * time: to be subtracted. Without counts it only stands in the place of an append that must not be written any more.
   */
  'usage.LookupsCorrected.v1': z.object({ counts: z.array(count) }),
  /**
   * Totals for the whole stream, in parts of bounded size: each row stands for all rows of its key, hour
   * and outcome that came before it in the stream. After the last part the stream is truncated before the first.
   */
  'usage.LookupsTotalled.v1': z.object({ part: z.int(), parts: z.int(), counts: z.array(count) }),
  'usage.TrackerCallsCounted.v1': z.object({ counts: z.array(trackerCalls) }),
  /** As `LookupsCorrected`. */
  'usage.TrackerCallsCorrected.v1': z.object({ counts: z.array(trackerCalls) }),
  /** As `LookupsTotalled`. */
  'usage.TrackerCallsTotalled.v1': z.object({ part: z.int(), parts: z.int(), counts: z.array(trackerCalls) }),
  /**
   * Stream `usage-trackers-<utc day>`: how many sessions and reveals began in the hours of a day, once it is over. They
   * themselves are gone after 30 days; this is what then still tells. `part` of `parts`; a part 0 opens the day again,
   * which a clock that was ahead had closed too early, and the parts after it replace those before.
   */
  'usage.TrackerDayClosed.v1': z.object({
    day: z.string(),
    part: z.int(),
    parts: z.int(),
    counts: z.array(trackerHour),
  }),
} as const;
export type UsageEvent = EventOf<typeof usageEvents>;

export const USAGE_PREFIX = 'usage-';

/** `day` as `YYYY-MM-DD`. */
export const usageStream = (bootId: string, day: string): string => `${USAGE_PREFIX}${bootId}-${day}`;

/** The stream that closes a day of trackers. */
export const trackerDayStream = (day: string): string => usageStream('trackers', day);

/** The day of a usage stream's name. */
export const dayOfUsageStream = (stream: string): string => stream.slice(-10);
