import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { shownText } from '../kernel/visibility.ts';

/** The outcomes that `GET /v1/usage` counts by (contract, Usage 2). */
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

/** Key, hour (UTC, `YYYY-MM-DDTHH`), outcome, requests, cache hits, total microseconds. */
const count = z.tuple([shownText(), shownText(), outcomeSchema, z.int(), z.int(), z.int()]);
export type LookupCount = z.output<typeof count>;

export const lookupKey = ([key, hour, outcome]: LookupCount): string => `${key} ${hour} ${outcome}`;

/** Adds two counts of the same key, hour and outcome. */
export const plus = (sum: LookupCount | undefined, row: LookupCount): LookupCount =>
  sum ? [sum[0], sum[1], sum[2], sum[3] + row[3], sum[4] + row[4], sum[5] + row[5]] : row;

/** Negates a count, for a correction. */
export function negated([key, hour, outcome, ...sums]: LookupCount): LookupCount {
  const [requests, hits, us] = sums;
  return [key, hour, outcome, -requests, -hits, -us];
}

/** Tracker, hour, capture requests, successful API requests, those that were complete, those that named a company. */
const trackerCalls = z.tuple([z.uuid(), shownText(), z.int(), z.int(), z.int(), z.int()]);
export type TrackerCalls = z.output<typeof trackerCalls>;

export const callsKey = ([tracker, hour]: TrackerCalls): string => `${tracker} ${hour}`;

/** Adds two counts of the same tracker and hour. */
export const plusCalls = (sum: TrackerCalls | undefined, row: TrackerCalls): TrackerCalls =>
  sum ? [sum[0], sum[1], sum[2] + row[2], sum[3] + row[3], sum[4] + row[4], sum[5] + row[5]] : row;

/** Negates a count, for a correction. */
export function negatedCalls([tracker, hour, ...sums]: TrackerCalls): TrackerCalls {
  const [captures, api, completed, company] = sums;
  return [tracker, hour, -captures, -api, -completed, -company];
}

/** Tracker, hour, new sessions, new reveals. */
const trackerHour = z.tuple([z.uuid(), shownText(), z.int(), z.int()]);
export type TrackerHour = z.output<typeof trackerHour>;

/** Stream `usage-<boot id>-<utc day>`: one kind of responses of one process on one day. */
export const usageEvents = {
  'usage.LookupsCounted.v1': z.object({ counts: z.array(count) }),
  /**
   * Subtracts responses that were counted earlier in the stream but not sent, because their count was not known to be durable
   * in time. Without counts, it only takes the revision of an append that must not be written any more.
   */
  'usage.LookupsCorrected.v1': z.object({ counts: z.array(count) }),
  /**
   * Totals of the whole stream, in parts of bounded size: each row replaces all earlier rows of its key, hour and outcome.
   * After the last part the stream is truncated before the first.
   */
  'usage.LookupsTotalled.v1': z.object({ part: z.int(), parts: z.int(), counts: z.array(count) }),
  'usage.TrackerCallsCounted.v1': z.object({ counts: z.array(trackerCalls) }),
  /** Corrects counts of tracker calls, like `LookupsCorrected`. */
  'usage.TrackerCallsCorrected.v1': z.object({ counts: z.array(trackerCalls) }),
  /** Totals tracker calls, like `LookupsTotalled`. */
  'usage.TrackerCallsTotalled.v1': z.object({ part: z.int(), parts: z.int(), counts: z.array(trackerCalls) }),
  /**
   * Stream `usage-trackers-<utc day>`: sessions and reveals that began in each hour of a past day; the counts outlive both.
   * `part` of `parts`; a part 0 reopens a day that a fast clock had closed too early, and later parts replace earlier ones.
   */
  'usage.TrackerDayClosed.v1': z.object({
    day: shownText(),
    part: z.int(),
    parts: z.int(),
    counts: z.array(trackerHour),
  }),
} as const;
export type UsageEvent = EventOf<typeof usageEvents>;

/**
 * Stream `expired-<partner>-<utc day>`: the sessions and reveals of some hours, counted before the events behind some of them are
 * erased. A rebuild, which may lack these events, replaces what it has counted up to the mark.
 */
export const trackerHourEvents = {
  'usage.TrackerHoursMarked.v1': z.object({
    partner_id: z.uuid(),
    mark_id: z.uuid(),
    /** Tracker and hour. */
    hours: z.array(z.tuple([z.uuid(), shownText()])),
  }),
  /** Sessions and reveals whose events precede the mark. */
  'usage.TrackerHoursKept.v1': z.object({
    partner_id: z.uuid(),
    mark_id: z.uuid(),
    counts: z.array(trackerHour),
  }),
} as const;
export type TrackerHourEvent = EventOf<typeof trackerHourEvents>;

export const USAGE_PREFIX = 'usage-';

/** `day` as `YYYY-MM-DD`. */
export const usageStream = (bootId: string, day: string): string => `${USAGE_PREFIX}${bootId}-${day}`;

/** Returns the stream that closes a day of trackers. */
export const trackerDayStream = (day: string): string => usageStream('trackers', day);

/** Returns the day in a usage stream's name. */
export const dayOfUsageStream = (stream: string): string => stream.slice(-10);
