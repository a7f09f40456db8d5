import pg from 'pg';
import { observeSignals } from '../commands/signals/observe-signals.ts';
import type { CluesOf } from '../http/lookup-clues.ts';
import { endPool } from '../platform/end-postgres.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { OpsHandler } from '../platform/ops-server.ts';
import { signals } from '../projections/signals/signals.ts';
import { countRepeated } from '../read-api/signal-rows.ts';
import { createClues } from '../read-api/signals.ts';
import { signalsHandler } from '../write-api/signals.ts';
import type { Runtime } from './runtime.ts';

/** A sender waits so long to be told exactly which of its clues were new. */
const OWN_WRITE_MS = 2_000;
/** An answer waits so long for its clues. */
const CLUES_MS = 200;
const CONNECTIONS = 2;

/** What takes clues from another system of the operator. */
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

/** What lookups of enabled keys are told: over connections of its own, and not for long. */
export const openClues = (
  { databaseUrl, dayKeys, clock, log }: Pick<Runtime, 'databaseUrl' | 'dayKeys' | 'clock' | 'log'>,
  metrics?: Metrics,
): Clues => {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: CONNECTIONS,
    application_name: 'doorplate clues',
    options: `-c statement_timeout=${CLUES_MS}`,
    connectionTimeoutMillis: CLUES_MS,
    idleTimeoutMillis: 60_000,
  });
  pool.on('error', (error) => log.warn({ error: error.message }, 'lost a database connection'));
  const of = createClues({
    pool,
    dayKeys,
    clock,
    limitMs: CLUES_MS,
    onUnavailable: () => metrics?.cluesUnavailable.inc(),
  });
  return { of, close: () => endPool(pool) };
};
