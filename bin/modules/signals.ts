import { observeSignals } from '../../commands/signals/observe-signals.ts';
import type { CluesOf } from '../../http/contract/schemas/company-signals.ts';
import { endPool, openPool } from '../../platform/postgres/pool.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { OpsHandler } from '../../platform/telemetry/ops-server.ts';
import { signals } from '../../projections/signals/signals.ts';
import { countRepeated, createClues } from '../../read-api/signals/clues.ts';
import { signalsHandler } from '../../write-api/signals/signals.ts';
import type { Runtime } from '../runtime.ts';

/** Time limit for finding out exactly which of a sender's clues were new. */
const OWN_WRITE_MS = 2_000;
/** Time limit for adding clues to a lookup's response. */
const CLUES_MS = 200;
const CONNECTIONS = 3;

/** Creates the intake of clues from another system of the operator. */
export const signalsIntake = (
  { store, clock, pool, progress, dayKeys: keys, digest }: Runtime,
  metrics?: Metrics,
): OpsHandler =>
  signalsHandler({
    clock,
    observe: (observations, context) => observeSignals({ store, keys, digest }, observations, context),
    projected: async (position) =>
      progress.reached([signals.name], position ?? (await store.head()), OWN_WRITE_MS),
    countRepeated: (eventIds, batch) => countRepeated(pool, eventIds, batch),
    onSignals: ({ accepted, duplicates }) => {
      metrics?.signals.inc({ outcome: 'accepted' }, accepted);
      metrics?.signals.inc({ outcome: 'duplicate' }, duplicates);
    },
  });

export interface Clues {
  readonly of: CluesOf;
  close(): Promise<void>;
}

/** Opens the clues for lookups of enabled keys, on separate connections with a short time limit. */
export function openClues(
  { databaseUrl, dayKeys, clock, log }: Pick<Runtime, 'databaseUrl' | 'dayKeys' | 'clock' | 'log'>,
  metrics?: Metrics,
): Clues {
  const pool = openPool(databaseUrl, log, {
    max: CONNECTIONS,
    application_name: 'doorplate clues',
    options: `-c statement_timeout=${CLUES_MS}`,
    connectionTimeoutMillis: CLUES_MS,
    // PostgreSQL's limit ends no statement that is lost on its way.
    query_timeout: 5 * CLUES_MS,
    idleTimeoutMillis: 60_000,
  });
  const of = createClues({
    pool,
    dayKeys,
    clock,
    limitMs: CLUES_MS,
    onUnavailable: () => metrics?.cluesUnavailable.inc(),
  });
  return { of, close: () => endPool(pool) };
}
