import { randomBytes } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import { accept, type Result } from '../../domain/kernel/decider.ts';
import type { DestinationPolicy } from '../../domain/webhooks/destination.ts';
import {
  type Endpoint,
  type EndpointCommand,
  type EndpointRefusal,
  type Endpoints,
  endpointsDecider,
  endpointsStream,
  snapshotEndpoints,
} from '../../domain/webhooks/endpoints.ts';
import { type EndpointEvent, endpointEvents, type SealedSecret } from '../../domain/webhooks/events.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { createBatcher } from '../batcher.ts';
import { type CommandContext, handle } from '../handle.ts';
import { loadFromSnapshot, type SnapshottedAggregate } from '../snapshots.ts';

export const endpointAggregate: SnapshottedAggregate<
  Endpoints,
  EndpointCommand,
  EndpointEvent,
  EndpointRefusal
> = {
  schemas: endpointEvents,
  decider: endpointsDecider,
  snapshot: snapshotEndpoints,
  sizeOf: ({ byId }) => byId.size,
};

/** Creates a batcher; one per process, because it caches the endpoints of recent partners. */
export const createEndpointBatcher = (store: EventStore) => createBatcher(store, endpointAggregate);
export type EndpointBatcher = ReturnType<typeof createEndpointBatcher>;

/** Reads an endpoint's current state from the log; undefined if there is none or it was forgotten after deletion. */
export const currentEndpoint = (batcher: EndpointBatcher, partnerId: string, webhookId: string) =>
  batcher.readState(endpointsStream(partnerId), ({ byId }) => byId.get(webhookId));

export interface NewEndpoint {
  readonly name: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly tracker_id: string | null;
}

/** null leaves a field unchanged. */
export interface EndpointChange {
  readonly name: string | null;
  readonly events: readonly string[] | null;
  readonly enabled: boolean | null;
}

export interface ChangedEndpoint {
  readonly endpoint: Endpoint;
  readonly position: Position | null;
}

/** `signing_secret` is shown only here. */
export type WithSecret = ChangedEndpoint & { readonly signing_secret: string };

type EndpointResult<T = ChangedEndpoint> = Promise<Result<T, EndpointRefusal>>;

export interface EndpointDeps {
  readonly batcher: EndpointBatcher;
  /** Endpoints per partner, without deleted ones. */
  readonly limit: number;
  readonly destinations: DestinationPolicy;
  /** Seals under the master key, bound to the endpoint's id. */
  readonly seal: (secret: Buffer, webhookId: string) => SealedSecret;
  /** Returns whether the partner has that tracker, not deleted. */
  readonly trackerKnown: (partnerId: string, trackerId: string) => Promise<boolean>;
}

const SECRET_BYTES = 32;
const SECRET_PREFIX = 'whsec_';

async function run(
  batcher: EndpointBatcher,
  command: Exclude<EndpointCommand, { type: 'Forget' }>,
  context: CommandContext,
): EndpointResult {
  const { partner_id, webhook_id } = command;
  const result = await batcher.submitCommand(endpointsStream(partner_id), command, context, ({ byId }) =>
    byId.get(webhook_id),
  );
  if (!result.ok) return result;
  const { value: endpoint, position } = result.value;
  if (!endpoint) throw new TypeError('a command on an unknown endpoint was accepted');
  return accept({ endpoint, position });
}

/** Deletes an endpoint. Idempotent. */
export const deleteEndpoint = (
  batcher: EndpointBatcher,
  partner_id: string,
  webhook_id: string,
  context: CommandContext,
): EndpointResult => run(batcher, { type: 'Delete', partner_id, webhook_id, at: context.at }, context);

/** Creates the commands on a partner's endpoints. Updates and deletions are idempotent and return the endpoint as it is. */
export function createEndpointCommands(deps: EndpointDeps) {
  const { batcher, limit, destinations, seal, trackerKnown } = deps;

  /** Runs a command with a new secret and returns the secret. */
  const withSecret = async (
    webhookId: string,
    work: (secret: SealedSecret) => EndpointResult,
  ): EndpointResult<WithSecret> => {
    const secret = randomBytes(SECRET_BYTES);
    const result = await work(seal(secret, webhookId));
    if (!result.ok) return result;
    return accept({ ...result.value, signing_secret: `${SECRET_PREFIX}${secret.toString('base64')}` });
  };

  return {
    create: async (partner_id: string, endpoint: NewEndpoint, context: CommandContext) => {
      const webhook_id = uuid();
      const { tracker_id } = endpoint;
      const tracker_known = tracker_id !== null && (await trackerKnown(partner_id, tracker_id));
      const known = { partner_id, webhook_id, ...endpoint, tracker_known, limit, destinations };
      return withSecret(webhook_id, (secret) =>
        run(batcher, { type: 'Create', ...known, secret, at: context.at }, context),
      );
    },
    update: (partner_id: string, webhook_id: string, change: EndpointChange, context: CommandContext) =>
      run(batcher, { type: 'Update', partner_id, webhook_id, ...change, at: context.at }, context),
    rotate: (partner_id: string, webhook_id: string, context: CommandContext) =>
      withSecret(webhook_id, (secret) =>
        run(batcher, { type: 'Rotate', partner_id, webhook_id, secret, at: context.at }, context),
      ),
    delete: (partner_id: string, webhook_id: string, context: CommandContext) =>
      deleteEndpoint(batcher, partner_id, webhook_id, context),
  };
}
export type EndpointCommands = ReturnType<typeof createEndpointCommands>;

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
export async function resealSecrets(
  deps: ResealingDeps,
  { partner_id, webhook_id }: { readonly partner_id: string; readonly webhook_id: string },
  context: CommandContext,
): Promise<boolean> {
  const { store } = deps;
  const stream = endpointsStream(partner_id);
  const loaded = await loadFromSnapshot(store, endpointAggregate, stream);
  const endpoint = loaded.state.byId.get(webhook_id);
  const secrets = endpoint && resealed(deps, endpoint, context.at);
  if (!secrets) return false;
  const command = { type: 'Reseal', partner_id, webhook_id, ...secrets, at: context.at } as const;
  const result = await handle(store, endpointAggregate, stream, command, context, loaded);
  return result.ok && result.value.events.length > 0;
}

/** Seals the secrets that still sign; null if all of them are under the current key, or the endpoint is deleted. */
function resealed({ reseal, isCurrent }: ResealingDeps, endpoint: Endpoint, at: number) {
  const { webhook_id, secret, previous, secret_rotation_until } = endpoint;
  const isDone = isCurrent(secret) && (previous === null || isCurrent(previous));
  if (endpoint.deleted_at !== null || isDone) return null;
  const previousSigns = previous !== null && at < Date.parse(secret_rotation_until ?? '');
  return {
    replaced: secret,
    secret: reseal(secret, webhook_id),
    previous: previousSigns ? reseal(previous, webhook_id) : null,
  };
}

/** Forgets a partner's endpoints deleted more than 90 days ago, by a snapshot without them. Idempotent. */
export async function forgetEndpoints(
  store: EventStore,
  partnerId: string,
  context: CommandContext,
): Promise<void> {
  const command = { type: 'Forget', partner_id: partnerId, at: context.at } as const;
  const stream = endpointsStream(partnerId);
  const known = await loadFromSnapshot(store, endpointAggregate, stream);
  await handle(store, endpointAggregate, stream, command, context, known);
}
