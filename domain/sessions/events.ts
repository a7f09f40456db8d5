import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { shownText } from '../kernel/visibility.ts';

const instant = z.iso.datetime();

/** Facts that each event repeats, so that the end of a stream can be read without its beginning. */
const ofSession = {
  session_id: z.uuid(),
  tracker_id: z.uuid(),
  partner_id: z.uuid(),
  /** Made by the browser. */
  visit_id: z.guid(),
  /** Digest of the visitor's address under the key of the day of `first_seen_at`. */
  visitor: z.string(),
  /** ISO 3166-1 alpha-2; null: unknown. */
  visitor_country: shownText().nullable(),
  first_seen_at: instant,
  expires_at: instant,
} as const;

/** Stream `tab-<uuidv5 of tracker and token>`: the sessions of one browser tab. */
export const sessionEvents = {
  'sessions.SessionCreated.v1': z.object({
    ...ofSession,
    /** `SessionSecrets` as JSON, sealed under the key of the day of `first_seen_at`, bound to `session_id`. */
    sealed: z.string(),
  }),
  'sessions.SessionVisited.v1': z.object({ ...ofSession, seen_at: instant }),
  /**
   * A session that shared its tab's earlier stream with an erased one, with all that its events there said. The visit is its last.
   */
  'sessions.SessionKept.v1': z.object({
    ...ofSession,
    sealed: z.string(),
    seen_at: instant,
    /** Log position of its SessionCreated, decimal: the order of the feed. */
    position: z.string().regex(/^\d{1,20}$/),
    /** Its visits, the last one too: retries are recognized by them. */
    visits: z.array(z.guid()),
  }),
} as const;
export type SessionEvent = EventOf<typeof sessionEvents>;

/** A label's value (contract, Pixel 2). */
const label = z.union([z.string(), z.number(), z.boolean(), z.null()]);
export type CustomParameters = Readonly<Record<string, z.output<typeof label>>>;

/** The personal data of a session, which is sealed. */
export const sessionSecretsSchema = z.object({
  /** Canonical, public or not. */
  ip: z.string(),
  custom: z.record(z.string(), label),
});
export type SessionSecrets = z.output<typeof sessionSecretsSchema>;

/** Stream `expired-<partner>-<utc day>`: ids that expired, so that the API can tell expired from unknown ids. */
export const sessionExpiryEvents = {
  'sessions.SessionsExpired.v1': z.object({
    partner_id: z.uuid(),
    /** Session id and time of expiry. */
    sessions: z.array(z.tuple([z.uuid(), instant])),
    /** Why they ended before their time; absent: they did not. */
    reason: shownText().optional(),
  }),
} as const;

export const TAB_PREFIX = 'tab-';

export const EXPIRED_PREFIX = 'expired-';
/** Returns the stream of a partner's sessions and receipts that were swept on a UTC day (`YYYY-MM-DD`). */
export const expiredStream = (partnerId: string, day: string): string =>
  `${EXPIRED_PREFIX}${partnerId}-${day}`;
/** Returns the day in such a stream's name. */
export const dayOfExpiredStream = (stream: string): string => stream.slice(-10);
