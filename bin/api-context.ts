import { createTrackerCommands, type TrackerCommands } from '../commands/trackers/manage-trackers.ts';
import {
  createLookupCounter,
  createTrackerCallCounter,
  type LookupCounter,
  type TrackerCall,
  type TrackerCallCounter,
} from '../commands/usage/count-calls.ts';
import type { PartnerRequest } from '../http/contract/route.ts';
import { TrackingUnavailable } from '../http/errors/failures.ts';
import { createOwnHost, createServedHosts, type ServedHosts } from '../http/server/own-host.ts';
import { type Countries, createCountries } from '../platform/country.ts';
import type { RateLimiter } from '../platform/limits/rate-limit.ts';
import { type ErasureNotices, listenForErasures } from '../platform/postgres/notifications.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { createDomainDirectory, type DomainDirectory } from '../queries/domains/directory.ts';
import { createTrackerDirectory, type TrackerDirectory } from '../queries/trackers/directory.ts';
import { type Clues, openClues } from './modules/signals.ts';
import { type ReadModels, type Runtime, readModels } from './runtime.ts';

/** What the modules build the API's routes from. */
export interface ApiContext extends ReadModels {
  readonly runtime: Runtime;
  readonly limiter: RateLimiter;
  readonly publicUrl: string;
  readonly metrics: Metrics | undefined;
  readonly counter: LookupCounter;
  readonly calls: TrackerCallCounter;
  /** Counts a successful API call about a tracker. @throws TrackingUnavailable */
  readonly countCall: (request: PartnerRequest, trackerId: string, call?: TrackerCall) => Promise<void>;
  readonly trackers: TrackerDirectory;
  readonly trackerCommands: TrackerCommands;
  readonly domainNames: DomainDirectory;
  readonly served: ServedHosts;
  readonly clues: Clues;
  readonly erasures: ErasureNotices;
  readonly countries: Countries;
}

export async function openApiContext(
  runtime: Runtime,
  limiter: RateLimiter,
  publicUrl: string,
  metrics: Metrics | undefined,
): Promise<ApiContext> {
  const { config, clock, pool, store, log } = runtime;
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
    trackers: createTrackerDirectory({ pool, waitForHead: reads.waitForHead(['trackers']) }),
    trackerCommands: createTrackerCommands(store, config.TRACKERS_PER_PARTNER),
    domainNames,
    served: createServedHosts(createOwnHost(publicUrl, config.PUBLIC_HOSTS), domainNames.trackerOf),
    clues: openClues(runtime, metrics),
    erasures: listenForErasures(runtime.databaseUrl),
    countries: await createCountries(config.COUNTRY_MMDB, log),
  };
}

const countCalls =
  (calls: TrackerCallCounter): ApiContext['countCall'] =>
  async ({ caller }, trackerId, call = { completed: true, company: false }) => {
    // Dashboard reads do not count as API requests.
    if (caller.kind === 'user') return;
    await calls.call(trackerId, call).catch((cause) => {
      throw new TrackingUnavailable('a call was not counted', { cause });
    });
  };
