import type pg from 'pg';
import { isOrigin, originMatches, originsMatching } from '../../domain/trackers/trackers.ts';
import { BackendTimeout } from '../../http/errors/failures.ts';
import { rowLoader, shortCache } from '../../platform/limits/loaders.ts';

/** A tracker as a pixel meets it. */
export interface ListedTracker {
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly origins: readonly string[];
  readonly customer_reference: string | null;
  /** By the partner, or because the partner is suspended. */
  readonly disabled: boolean;
  readonly deleted: boolean;
}

/** One may have 13 KB: a tracker with 50 long origins, of which a partner may have made thousands. */
const CACHED = { max: 1_000 };

/** Finds trackers by their public id; deleted ones too. */
export interface TrackerDirectory {
  /** `id` in lower case. null: there is none. @throws BackendTimeout when the read models are too far behind to say so */
  find(id: string): ListedTracker | null | Promise<ListedTracker | null>;
  /** Whether a page of this origin is one of the tracker's. */
  allows(tracker: ListedTracker, origin: string): boolean;
  /** Whether a page of this origin is one of any enabled tracker's. */
  anyAllows(origin: string): boolean | Promise<boolean>;
  /** To be called once a change of the tracker is in the read model. */
  forget(id: string): void;
}

export interface TrackerDirectoryDeps {
  readonly pool: pg.Pool;
  /** Waits until the read models have all that the store has now; false after the time limit. */
  readonly waitForHead: () => Promise<boolean>;
}

/** Tells whether the partner of a tracker `t` is suspended. */
const IS_SUSPENDED =
  'exists (select from read.partner p where p.partner_id = t.partner_id and p.suspended_at is not null)';

export function createTrackerDirectory({ pool, waitForHead }: TrackerDirectoryDeps): TrackerDirectory {
  const readTrackers = async (ids: readonly string[]): Promise<Map<string, ListedTracker>> => {
    const { rows } = await pool.query<ListedTracker>({
      name: 'listed_trackers',
      text: `select tracker_id, partner_id, origins, customer_reference,
                    disabled_at is not null or ${IS_SUSPENDED} as disabled, deleted_at is not null as deleted
             from read.tracker t where tracker_id = any ($1)`,
      values: [ids],
    });
    return new Map(rows.map((row) => [row.tracker_id, row]));
  };

  const find = rowLoader(readTrackers);
  const findAgain = rowLoader(async (ids) => {
    if (!(await waitForHead())) throw new BackendTimeout('the read models are behind');
    return readTrackers(ids);
  });

  const trackers = shortCache(async (id) => (await find(id)) ?? findAgain(id), CACHED);

  const readOrigins = async (pages: readonly string[]): Promise<Map<string, boolean>> => {
    const matching = new Map(pages.map((page) => [page, originsMatching(page)]));
    const { rows } = await pool.query<{ origin: string }>({
      name: 'known_origins',
      // Each origin by itself and not `&&`: of a hundred, PostgreSQL expects so many matches that it reads all trackers.
      text: `select page.origin from unnest($1::text[]) as page (origin)
             cross join lateral (
               select from read.tracker t
               where origins @> array[page.origin] and coalesce(disabled_at, deleted_at) is null and not ${IS_SUSPENDED}
               limit 1) t`,
      values: [[...new Set([...matching.values()].flat())]],
    });
    const known = new Set(rows.map(({ origin }) => origin));
    return new Map(
      [...matching].map(([page, origins]) => [page, origins.some((origin) => known.has(origin))]),
    );
  };
  const findOrigin = rowLoader(readOrigins);
  const pages = shortCache(async (origin) => (await findOrigin(origin)) ?? false, CACHED);

  return {
    find: trackers.find,
    allows: ({ origins }, origin) => originMatches(origins, origin),
    // Anything else would fill the cache: a header has up to 16 KiB.
    anyAllows: (origin) => isOrigin(origin) && pages.find(origin),
    forget: trackers.forget,
  };
}
