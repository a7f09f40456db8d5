import { createTrackerCommands, type TrackerCommands } from '../commands/trackers/manage-trackers.ts';
import { createLookupCounter, type LookupCounter } from '../commands/usage/count-lookups.ts';
import {
  createTrackerCallCounter,
  type TrackerCall,
  type TrackerCallCounter,
} from '../commands/usage/count-tracker-calls.ts';
import type { Position } from '../event-store/port.ts';
import { TrackingUnavailable } from '../http/failures.ts';
import { createServedHosts, type ServedHosts } from '../http/own-host.ts';
import type { ApiRequest } from '../http/route.ts';
import { type Countries, createCountries } from '../platform/country.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { RateLimiter } from '../platform/rate-limit.ts';
import { shareNext } from '../platform/share-next.ts';
import { createDomainDirectory, type DomainDirectory } from '../queries/domains/directory.ts';
import { createTrackerDirectory, type TrackerDirectory } from '../queries/trackers/directory.ts';
import { type Clues, openClues } from './modules/signals.ts';
import type { Runtime } from './runtime.ts';

/** Reads that include what was written before. `names`: projections. */
export interface ReadModels {
  /** Returns a wait for the store's current head; it resolves to false after a time limit. */
  readonly caughtUp: (names: readonly string[], limitMs?: number) => () => Promise<boolean>;
  /** As `caughtUp`, for polls, which are frequent and not urgent: they do not make projections hurry. */
  readonly polled: (names: readonly string[]) => (limitMs: number) => Promise<boolean>;
  /** Returns a brief wait for a caller's own write; after its time limit the write is answered anyway. */
  readonly ownWrite: (names: readonly string[]) => (position: Position | null) => Promise<unknown>;
}

/** What the modules build the API's routes from. */
export interface ApiContext extends ReadModels {
  readonly runtime: Runtime;
  readonly limiter: RateLimiter;
  readonly publicUrl: string;
  readonly metrics: Metrics | undefined;
  readonly counter: LookupCounter;
  readonly calls: TrackerCallCounter;
  /** Counts a successful API call about a tracker. @throws TrackingUnavailable */
  readonly countCall: (request: ApiRequest, trackerId: string, call?: TrackerCall) => Promise<void>;
  readonly trackers: TrackerDirectory;
  readonly trackerCommands: TrackerCommands;
  readonly domainNames: DomainDirectory;
  readonly served: ServedHosts;
  readonly clues: Clues;
  readonly countries: Countries;
}

/** Time limit of waiting for a caller's own write. */
const OWN_WRITE_MS = 1_000;
/** Time limit of a read that must include all earlier writes. */
const CAUGHT_UP_MS = 4_000;

export const openApiContext = async (
  runtime: Runtime,
  limiter: RateLimiter,
  publicUrl: string,
  metrics: Metrics | undefined,
): Promise<ApiContext> => {
  const { config, clock, pool, store } = runtime;
  const reads = readModels(runtime);
  const calls = createTrackerCallCounter(store, clock);
  const domainNames = createDomainDirectory(pool);
  return {
    ...reads,
    runtime,
    limiter,
    publicUrl,
    metrics,
    counter: createLookupCounter(store, clock),
    calls,
    countCall: countCalls(calls),
    trackers: createTrackerDirectory({ pool, caughtUp: reads.caughtUp(['trackers']) }),
    trackerCommands: createTrackerCommands(store, config.TRACKERS_PER_PARTNER),
    domainNames,
    served: createServedHosts(publicUrl, domainNames.trackerOf),
    clues: openClues(runtime, metrics),
    countries: await createCountries(config.COUNTRY_MMDB),
  };
};

/** Waits for the read models. A projection that an event has stopped delays only its own reads. */
const readModels = ({ store, progress }: Pick<Runtime, 'store' | 'progress'>): ReadModels => {
  const head = shareNext(store.head);
  return {
    caughtUp:
      (names, limitMs = CAUGHT_UP_MS) =>
      async () =>
        progress.reached(names, await head(), limitMs),
    polled: (names) => async (limitMs) => progress.reached(names, await head(), limitMs, 'patient'),
    ownWrite: (names) => (position) => progress.reached(names, position, OWN_WRITE_MS),
  };
};

const countCalls =
  (calls: TrackerCallCounter): ApiContext['countCall'] =>
  async ({ userId }, trackerId, call = { completed: true, company: false }) => {
    // Dashboard reads do not count as API requests.
    if (userId !== undefined) return;
    await calls.call(trackerId, call).catch((cause) => {
      throw new TrackingUnavailable('a call was not counted', { cause });
    });
  };
