import type { CommandContext } from '../commands/handle.ts';
import { resealSecrets } from '../commands/webhooks/manage-endpoints.ts';
import { resealKeys } from '../platform/crypto/keyring.ts';
import {
  beginKeyChange,
  endKeyChange,
  type MasterKey,
  openText,
  sealText,
} from '../platform/crypto/master-key.ts';
import { AnotherRuns, exclusiveJob } from '../platform/postgres/transactions.ts';
import { endpointsSealedOtherwise } from '../projections/webhooks/endpoints/readers.ts';
import type { ProcessorDeps } from './deps.ts';
import { resealSecondFactors } from './partners/second-factor.ts';
import type { Reached } from './retire-streams.ts';

export interface RotationDeps extends ProcessorDeps {
  readonly databaseUrl: string;
  /** Progress of the read models. */
  readonly progress: Reached;
  readonly master: MasterKey;
  /** The data folder's key file; null if the keys are configured. */
  readonly keyFile: string | null;
  /** Time after which no process still writes under the previous key, milliseconds. */
  readonly settleMs: number;
}

/** Numbers of resealed items. */
export interface Rotated {
  readonly keys: number;
  readonly endpoints: number;
  readonly second_factors: number;
}

export class RotationImpossible extends Error {}

const ENDPOINTS = 'webhooks';
const PROJECTED_MS = 30_000;

/**
 * Seals everything at rest under the current master key: the configured one, or a new one that it adds to the data folder.
 * The previous key stays until nothing needs it. Can be interrupted at any time: either key opens everything, and a repeat
 * continues.
 * @throws RotationImpossible
 */
export const rotateMaster = (deps: RotationDeps, context: CommandContext): Promise<Rotated> =>
  alone(deps.databaseUrl, async () => {
    const { keyFile, settleMs } = deps;
    if (keyFile === null) return resealAll(deps, context);
    beginKeyChange(keyFile);
    const first = await resealAll(deps, context);
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const late = await resealAll(deps, context);
    endKeyChange(keyFile);
    return sumOf(first, late);
  });

async function resealAll(deps: RotationDeps, context: CommandContext): Promise<Rotated> {
  let all: Rotated = { keys: 0, endpoints: 0, second_factors: 0 };
  for (;;) {
    const pass = {
      keys: await resealKeys(deps.pool, deps.master),
      endpoints: await resealEndpoints(deps, context),
      second_factors: await resealSecondFactors(deps.pool, deps.master),
    };
    if (Object.values(pass).every((resealed) => resealed === 0)) return all;
    all = sumOf(all, pass);
  }
}

const sumOf = (one: Rotated, other: Rotated): Rotated => ({
  keys: one.keys + other.keys,
  endpoints: one.endpoints + other.endpoints,
  second_factors: one.second_factors + other.second_factors,
});

/** @returns the number found, even if another process has resealed some meanwhile */
async function resealEndpoints(
  { store, pool, progress, master, clock }: RotationDeps,
  context: CommandContext,
): Promise<number> {
  if (!(await progress.reached([ENDPOINTS], await store.head(), PROJECTED_MS))) {
    throw new RotationImpossible(`the read model ${ENDPOINTS} is behind: see doorplate projection list`);
  }
  const left = await endpointsSealedOtherwise(pool, master.currentId());
  const resealing = {
    store,
    reseal: (secret: Parameters<typeof openText>[1], webhookId: string) =>
      sealText(master, openText(master, secret, webhookId), webhookId),
    isCurrent: ({ master_key_id }: { readonly master_key_id: string }) =>
      master_key_id === master.currentId(),
  };
  for (const endpoint of left) await resealSecrets(resealing, endpoint, { ...context, at: clock.now() });
  return left.length;
}

const alone = <T>(url: string, work: () => Promise<T>): Promise<T> =>
  exclusiveJob(url, 'rotation', work).catch((error: unknown) => {
    throw error instanceof AnotherRuns ? new RotationImpossible(error.message) : error;
  });
