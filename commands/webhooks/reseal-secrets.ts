import type { Endpoint } from '../../domain/webhooks/endpoint-state.ts';
import { endpointsStream } from '../../domain/webhooks/endpoints.ts';
import type { SealedSecret } from '../../domain/webhooks/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type CommandContext, handle } from '../handle.ts';
import { loadFromSnapshot } from '../snapshots.ts';
import { endpointAggregate } from './manage-endpoints.ts';

export interface ResealingDeps {
  readonly store: EventStore;
  /** Opens a secret and seals it under the current key. @throws if no known key opens it */
  readonly reseal: (secret: SealedSecret, webhookId: string) => SealedSecret;
  /** Returns whether a secret is sealed under the current key. */
  readonly isCurrent: (secret: SealedSecret) => boolean;
}

/**
 * Seals an endpoint's secrets under the current master key; the secrets themselves stay the same. Skips deleted endpoints
 * and secrets under the current key.
 * @returns whether anything changed
 */
export const resealSecrets = async (
  deps: ResealingDeps,
  { partner_id, webhook_id }: { readonly partner_id: string; readonly webhook_id: string },
  context: CommandContext,
): Promise<boolean> => {
  const { store } = deps;
  const stream = endpointsStream(partner_id);
  const loaded = await loadFromSnapshot(store, endpointAggregate, stream);
  const endpoint = loaded.state.byId.get(webhook_id);
  const secrets = endpoint && resealed(deps, endpoint, context.at);
  if (!secrets) return false;
  const command = { type: 'Reseal', partner_id, webhook_id, ...secrets, at: context.at } as const;
  const result = await handle(store, endpointAggregate, stream, command, context, loaded);
  return result.ok && result.value.events.length > 0;
};

/** Returns null if nothing needs resealing. */
const resealed = ({ reseal, isCurrent }: ResealingDeps, endpoint: Endpoint, at: number) => {
  const { webhook_id, secret, previous, secret_rotation_until } = endpoint;
  const isDone = isCurrent(secret) && (previous === null || isCurrent(previous));
  if (endpoint.deleted_at !== null || isDone) return null;
  // A previous secret past its rotation is dropped.
  const signs = previous !== null && at < Date.parse(secret_rotation_until ?? '');
  return {
    of: secret,
    secret: reseal(secret, webhook_id),
    previous: signs ? reseal(previous, webhook_id) : null,
  };
};
