import type { CommandContext } from '../commands/handle.ts';
import { resealSecrets } from '../commands/webhooks/reseal-secrets.ts';
import { resealKeys } from '../platform/keyring.ts';
import { openText, sealText } from '../platform/master-key.ts';
import { beginKeyChange, endKeyChange } from '../platform/master-key-file.ts';
import { AnotherRuns, onlyOne } from '../platform/only-one.ts';
import { webhooks } from '../projections/webhooks/endpoints.ts';
import { endpointsSealedOtherwise } from '../read-api/webhook-secrets.ts';
import type { Runtime } from './runtime.ts';

export type RotationDeps = Pick<
  Runtime,
  'store' | 'pool' | 'databaseUrl' | 'progress' | 'master' | 'clock'
> & {
  /** The data folder's own key; null where the configuration has the keys. */
  readonly keyFile: string | null;
  /** Whoever has sealed something under the key before has written it down after so many milliseconds. */
  readonly settleMs: number;
};

/** What was sealed anew. */
export interface Rotated {
  readonly keys: number;
  readonly endpoints: number;
}

export class RotationImpossible extends Error {}

const PROJECTED_MS = 30_000;

/**
 * Seals everything at rest under the master key in use: the configured one, or a new one that it puts into the data
 * folder. The key before stays there until nothing is left that it must open. May be killed at any moment: until it is
 * run to its end everything opens under the one key or the other, and a repeat goes on where it was.
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
    return { keys: first.keys + late.keys, endpoints: first.endpoints + late.endpoints };
  });

/** Until a pass finds nothing. */
const resealAll = async (deps: RotationDeps, context: CommandContext): Promise<Rotated> => {
  let [keys, endpoints] = [0, 0];
  for (;;) {
    const pass = {
      keys: await resealKeys(deps.pool, deps.master),
      endpoints: await resealEndpoints(deps, context),
    };
    if (pass.keys === 0 && pass.endpoints === 0) return { keys, endpoints };
    keys += pass.keys;
    endpoints += pass.endpoints;
  }
};

/** @returns how many were found, whether or not they were changed by somebody else meanwhile */
const resealEndpoints = async (
  { store, pool, progress, master, clock }: RotationDeps,
  context: CommandContext,
): Promise<number> => {
  if (!(await progress.reached([webhooks.name], await store.head(), PROJECTED_MS))) {
    throw new RotationImpossible(`the read model ${webhooks.name} is behind: see doorplate projection list`);
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
};

/** One at a time over all processes. */
const alone = <T>(url: string, work: () => Promise<T>): Promise<T> =>
  onlyOne(url, 'rotation', work).catch((error: unknown) => {
    throw error instanceof AnotherRuns ? new RotationImpossible(error.message) : error;
  });
