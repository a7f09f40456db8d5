/** What the pages about visitors and usage are handed. Days are UTC days, `YYYY-MM-DD`; instants are ISO 8601. */

import type { SessionBody } from '../../read-api/sessions/schemas.ts';

export interface Range {
  /** Inclusive. */
  readonly from: string;
  /** Exclusive. */
  readonly to: string;
}

/** Answers to one key on one day, of one outcome (contract, Usage 2). */
export interface LookupDay {
  readonly day: string;
  readonly key_id: string;
  readonly outcome: string;
  readonly requests: number;
  readonly cache_hits: number;
}

/** What happened on one tracker on one day: visits of the pixel, sessions that began, reveals that were completed, and units. */
export interface TrackerDay {
  readonly day: string;
  readonly tracker_id: string;
  readonly visits: number;
  readonly sessions: number;
  readonly reveals: number;
  readonly units: number;
}

export interface Allowance {
  /** New enrichments since the day began, by key. */
  readonly reserved: ReadonlyMap<string, number>;
  /** Unfinished ones of the partner's. */
  readonly pending: number;
}

export interface CompanyRow {
  readonly key: string;
  readonly name: string;
  readonly website: string | null;
  readonly industry: string | null;
  readonly country: string | null;
  readonly sessions: number;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  /** By which the rows are ordered: when the company was last seen, as far as that was before the first page was made. */
  readonly seen_at: string;
  readonly tracker_ids: readonly string[];
}

export interface Companies {
  /** Ordered by `seen_at`, the latest first, and then by key. */
  readonly companies: readonly CompanyRow[];
  /** Whether there are more reveals than were read. */
  readonly isPartial: boolean;
}

/**
 * Reads the companies of a period. `asOf`: ISO 8601, what came later does not change the order. `asFile`: of many more reveals than
 * a page needs.
 */
export type ReadCompanies = (
  partnerId: string,
  trackerId: string | null,
  range: Range,
  asOf: string,
  asFile?: boolean,
) => Promise<Companies>;

/** A session of a company, with the receipt that names the company. */
export interface CompanyVisit {
  readonly session_id: string;
  readonly tracker_id: string;
  readonly visitor_country: string | null;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly reveal_id: string;
  readonly company: Readonly<Record<string, unknown>>;
}

export interface SessionSearch {
  /** null: every tracker. */
  readonly trackerId: string | null;
  /** ISO 3166-1 alpha-2; `unknown`: none was found. */
  readonly country?: string;
  readonly revealed?: 'yes' | 'no';
  /** Part of a revealed company's name. */
  readonly company?: string;
  /** Part of a label's name or value. */
  readonly label?: string;
  /** First seen since then, and before then. */
  readonly from?: string;
  readonly to?: string;
  /** The `older` of an earlier page of the same list; null: the first page. */
  readonly before: string | null;
}

export interface FoundSessions {
  readonly sessions: readonly SessionBody[];
  /** Where to go on; null: there is nothing older. */
  readonly older: string | null;
  /** The search stopped although there may be more matches: it has looked at as many sessions as one request may. */
  readonly isCutShort: boolean;
}

/** A partner's trackers by day; `trackerId` null: all of them. */
export type ReadTrackerDays = (
  partnerId: string,
  trackerId: string | null,
  range: Range,
) => Promise<readonly TrackerDay[]>;
