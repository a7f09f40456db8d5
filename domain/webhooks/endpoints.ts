import { Map as PersistentMap } from 'immutable';
import { z } from 'zod';
import { accept, type Decider, type Result, refuse, unreachable } from '../kernel/decider.ts';
import { isName } from '../kernel/text.ts';
import { DAY, isoTime } from '../kernel/time.ts';
import { type DestinationPolicy, parseDestination } from './destination.ts';
import {
  type EndpointEvent,
  type SealedSecret,
  type SnapshottedEndpoint,
  type Subscribable,
  subscribableSchema,
  WEBHOOK_HISTORY_MS,
  WEBHOOKS_PREFIX,
} from './events.ts';

export interface Endpoint {
  readonly webhook_id: string;
  readonly name: string;
  readonly url: string;
  readonly events: readonly Subscribable[];
  /** null: all trackers of the partner. */
  readonly tracker_id: string | null;
  readonly enabled: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly deleted_at: string | null;
  readonly secret: SealedSecret;
  /** The previous secret, which also signs until `secret_rotation_until`. */
  readonly previous: SealedSecret | null;
  readonly secret_rotation_until: string | null;
  /** The last recovery that was requested. */
  readonly recovery: Recovery | null;
}

export type Recovery = NonNullable<SnapshottedEndpoint['recovery']>;

/** A partner's endpoints, and recently deleted ones. */
export interface Endpoints {
  readonly byId: PersistentMap<string, Endpoint>;
  readonly notDeleted: number;
  /** Ids of deleted endpoints that are still in `byId`, the latest last. */
  readonly deleted: readonly string[];
}

/** Deleted endpoints that the state, and so a snapshot, holds. */
const MAX_DELETED_IN_SNAPSHOT = 100;

const isForgotten = ({ deleted_at }: Endpoint, at: number): boolean =>
  deleted_at !== null && at >= Date.parse(deleted_at) + WEBHOOK_HISTORY_MS;

/** `added`: change of the number of endpoints that are not deleted. */
const put = (state: Endpoints, endpoint: Endpoint, added: number): Endpoints => ({
  ...state,
  byId: state.byId.set(endpoint.webhook_id, endpoint),
  notDeleted: state.notDeleted + added,
});

function change(state: Endpoints, id: string, fieldsOf: (old: Endpoint) => Partial<Endpoint>, added = 0) {
  const endpoint = state.byId.get(id);
  return endpoint ? put(state, { ...endpoint, ...fieldsOf(endpoint) }, added) : state;
}

function evictOldDeleted(state: Endpoints, webhookId: string): Endpoints {
  const deleted = [...state.deleted, webhookId];
  const evicted = deleted.splice(0, deleted.length - MAX_DELETED_IN_SNAPSHOT);
  return { ...state, byId: state.byId.deleteAll(evicted), deleted };
}

/** Makes a snapshot event of the state, with deleted endpoints first, in the order of deletion. */
export function snapshotEndpoints({ byId, deleted }: Endpoints): EndpointEvent {
  const rest = byId.deleteAll(deleted);
  const endpoints = [...deleted.flatMap((id) => byId.get(id) ?? []), ...rest.values()];
  return {
    type: 'webhooks.EndpointsSnapshotted.v1',
    data: { endpoints: endpoints.map((endpoint) => ({ ...endpoint, events: [...endpoint.events] })) },
  };
}

function forgetDeleted(at: number, state: Endpoints): EndpointEvent[] {
  const byId = state.byId.filterNot((endpoint) => isForgotten(endpoint, at));
  return byId.size === state.byId.size ? [] : [snapshotEndpoints({ ...state, byId })];
}

function restored(endpoints: readonly Endpoint[]): Endpoints {
  const deleted = endpoints.flatMap(({ webhook_id, deleted_at }) =>
    deleted_at === null ? [] : [webhook_id],
  );
  return {
    byId: PersistentMap(endpoints.map((endpoint) => [endpoint.webhook_id, endpoint])),
    notDeleted: endpoints.length - deleted.length,
    deleted,
  };
}

interface EndpointRef {
  readonly partner_id: string;
  readonly webhook_id: string;
  /** Milliseconds. */
  readonly at: number;
}

export type EndpointCommand =
  | (EndpointRef & {
      readonly type: 'Create';
      readonly name: string;
      readonly url: string;
      readonly events: readonly string[];
      readonly tracker_id: string | null;
      /** Whether the partner has that tracker, not deleted. */
      readonly tracker_known: boolean;
      readonly secret: SealedSecret;
      /** Endpoints per partner, without deleted ones. */
      readonly limit: number;
      readonly destinations: DestinationPolicy;
    })
  /** null leaves a field unchanged. */
  | (EndpointRef & {
      readonly type: 'Update';
      readonly name: string | null;
      readonly events: readonly string[] | null;
      readonly enabled: boolean | null;
    })
  | (EndpointRef & { readonly type: 'Rotate'; readonly secret: SealedSecret })
  /** The same secrets under another master key; `replaced`: the newest secret as the caller read it. */
  | (EndpointRef & {
      readonly type: 'Reseal';
      readonly replaced: SealedSecret;
      readonly secret: SealedSecret;
      readonly previous: SealedSecret | null;
    })
  | (EndpointRef & { readonly type: 'Delete' })
  | (EndpointRef &
      Omit<Recovery, 'requested_at' | 'completed_at'> & {
        readonly type: 'Recover';
        /** Whether the partner's queue takes more deliveries. */
        readonly has_room: boolean;
      })
  | (EndpointRef & { readonly type: 'CompleteRecovery'; readonly recovery_id: string })
  /** Forgets, by a snapshot of the others, endpoints past the retention of deleted ones. */
  | { readonly type: 'Forget'; readonly partner_id: string; readonly at: number };

export type EndpointRefusal =
  | 'invalid_webhook'
  | 'invalid_webhook_url'
  | 'tracker_not_found'
  | 'webhook_limit'
  | 'webhook_not_found'
  | 'webhook_disabled'
  | 'webhook_queue_full'
  | 'webhook_rotation_pending';

type CommandOf<Type extends EndpointCommand['type']> = Extract<EndpointCommand, { type: Type }>;
type Decision = Result<EndpointEvent[], EndpointRefusal>;

const MAX_NAME_LENGTH = 100;
/** How long both secrets sign (contract, Webhooks 4). */
const ROTATION_MS = DAY;
/** How far back a recovery reaches: no body is kept for longer. */
const RECOVERABLE_MS = 30 * DAY;

/** Validates a set of events, keeping its order; null for unknown or repeated events and for an empty set. */
function asEvents(names: readonly string[]): Subscribable[] | null {
  if (names.length > subscribableSchema.options.length) return null;
  const events = names.flatMap((name) => subscribableSchema.safeParse(name).data ?? []);
  const different = new Set(events).size === names.length;
  return events.length > 0 && events.length === names.length && different ? events : null;
}

const isSame = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === others.length && some.every((name, index) => name === others[index]);

function create(command: CommandOf<'Create'>, state: Endpoints): Decision {
  const { partner_id, webhook_id, url, tracker_id, secret, at } = command;
  const name = command.name.trim();
  const events = asEvents(command.events);
  // The batcher repeated the command after an unknown outcome.
  if (state.byId.has(webhook_id)) return accept([]);
  if (!isName(name, MAX_NAME_LENGTH) || events === null) return refuse('invalid_webhook');
  const destination = parseDestination(url, command.destinations);
  if (!destination.ok) return destination;
  if (tracker_id !== null && !command.tracker_known) return refuse('tracker_not_found');
  if (state.notDeleted >= command.limit) return refuse('webhook_limit');
  return accept([
    {
      type: 'webhooks.EndpointCreated.v1',
      data: { webhook_id, partner_id, name, url, events, tracker_id, secret, created_at: isoTime(at) },
    },
  ]);
}

function update(command: CommandOf<'Update'>, state: Endpoints): Decision {
  const { partner_id, webhook_id, at } = command;
  const name = command.name?.trim() ?? null;
  const events = command.events && asEvents(command.events);
  const wrong = (name !== null && !isName(name, MAX_NAME_LENGTH)) || (command.events !== null && !events);
  if (wrong) return refuse('invalid_webhook');
  const endpoint = state.byId.get(webhook_id);
  if (!endpoint || endpoint.deleted_at !== null) return refuse('webhook_not_found');
  const next = {
    name: name ?? endpoint.name,
    events: events ?? [...endpoint.events],
    enabled: command.enabled ?? endpoint.enabled,
  };
  const same =
    next.name === endpoint.name && next.enabled === endpoint.enabled && isSame(next.events, endpoint.events);
  if (same) return accept([]);
  return accept([
    {
      type: 'webhooks.EndpointUpdated.v1',
      data: { webhook_id, partner_id, ...next, updated_at: isoTime(at) },
    },
  ]);
}

function rotate(command: CommandOf<'Rotate'>, endpoint: Endpoint): Decision {
  const { partner_id, webhook_id, secret, at } = command;
  const { deleted_at, secret_rotation_until } = endpoint;
  if (deleted_at !== null) return refuse('webhook_not_found');
  // The batcher repeated the command after an unknown outcome.
  if (endpoint.secret.sealed === secret.sealed) return accept([]);
  if (secret_rotation_until !== null && at < Date.parse(secret_rotation_until)) {
    return refuse('webhook_rotation_pending');
  }
  const rotation_until = isoTime(at + ROTATION_MS);
  return accept([
    {
      type: 'webhooks.SecretRotated.v1',
      data: { webhook_id, partner_id, secret, rotated_at: isoTime(at), rotation_until },
    },
  ]);
}

function reseal(command: CommandOf<'Reseal'>, endpoint: Endpoint): Decision {
  const { partner_id, webhook_id, replaced, secret, previous } = command;
  if (endpoint.deleted_at !== null) return refuse('webhook_not_found');
  // The secret was rotated since the caller read it.
  if (replaced.sealed !== endpoint.secret.sealed) return accept([]);
  return accept([
    { type: 'webhooks.SecretsResealed.v1', data: { webhook_id, partner_id, secret, previous } },
  ]);
}

function remove({ partner_id, webhook_id, at }: EndpointRef, { deleted_at }: Endpoint): Decision {
  if (deleted_at !== null) return accept([]);
  return accept([
    { type: 'webhooks.EndpointDeleted.v1', data: { webhook_id, partner_id, deleted_at: isoTime(at) } },
  ]);
}

/** Returns the canonical form of a recovery's `since`; null unless it is a UTC timestamp of the 30 days before `at` (milliseconds). */
export function recoverableSince(since: unknown, at: number): string | null {
  const instant = z.iso.datetime().safeParse(since);
  if (!instant.success) return null;
  const ms = Date.parse(instant.data);
  return ms > at || ms < at - RECOVERABLE_MS ? null : isoTime(ms);
}

/** Returns whether a recovery of the endpoint is under way. */
export const isRecovering = ({ recovery }: Pick<Endpoint, 'recovery'>): boolean =>
  recovery?.completed_at === null;

function recover(command: CommandOf<'Recover'>, endpoint: Endpoint): Decision {
  const { type: _, has_room, at, ...requested } = command;
  if (!endpoint.enabled) return refuse('webhook_disabled');
  const isRepeated = endpoint.recovery?.recovery_id === command.recovery_id;
  if (isRepeated || isRecovering(endpoint)) return accept([]);
  if (!has_room) return refuse('webhook_queue_full');
  return accept([
    { type: 'webhooks.RecoveryRequested.v1', data: { ...requested, requested_at: isoTime(at) } },
  ]);
}

function completeRecovery(
  { partner_id, webhook_id, recovery_id, at }: CommandOf<'CompleteRecovery'>,
  { recovery }: Endpoint,
): Decision {
  const isOpen = recovery?.recovery_id === recovery_id && recovery.completed_at === null;
  if (!isOpen) return accept([]);
  const completed_at = isoTime(at);
  return accept([
    { type: 'webhooks.RecoveryCompleted.v1', data: { webhook_id, partner_id, recovery_id, completed_at } },
  ]);
}

export const endpointsDecider: Decider<Endpoints, EndpointCommand, EndpointEvent, EndpointRefusal> = {
  initial: { byId: PersistentMap(), notDeleted: 0, deleted: [] },

  decide(command, state) {
    if (command.type === 'Forget') return accept(forgetDeleted(command.at, state));
    if (command.type === 'Create') return create(command, state);
    // An invalid field is refused before an unknown endpoint.
    if (command.type === 'Update') return update(command, state);
    const endpoint = state.byId.get(command.webhook_id);
    if (!endpoint || isForgotten(endpoint, command.at)) return refuse('webhook_not_found');
    switch (command.type) {
      case 'Rotate':
        return rotate(command, endpoint);
      case 'Reseal':
        return reseal(command, endpoint);
      case 'Delete':
        return remove(command, endpoint);
      case 'Recover':
        return recover(command, endpoint);
      case 'CompleteRecovery':
        return completeRecovery(command, endpoint);
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'webhooks.EndpointCreated.v1': {
        const { partner_id: _, ...endpoint } = data;
        const rest = { deleted_at: null, previous: null, secret_rotation_until: null, recovery: null };
        return put(state, { ...endpoint, ...rest, enabled: true, updated_at: data.created_at }, 1);
      }
      case 'webhooks.EndpointUpdated.v1': {
        const { name, events, enabled, updated_at } = data;
        return change(state, data.webhook_id, () => ({ name, events, enabled, updated_at }));
      }
      case 'webhooks.SecretRotated.v1':
        return change(state, data.webhook_id, ({ secret }) => ({
          secret: data.secret,
          previous: secret,
          secret_rotation_until: data.rotation_until,
          updated_at: data.rotated_at,
        }));
      case 'webhooks.SecretsResealed.v1':
        return change(state, data.webhook_id, () => ({ secret: data.secret, previous: data.previous }));
      case 'webhooks.EndpointDeleted.v1':
        return evictOldDeleted(
          change(state, data.webhook_id, () => ({ enabled: false, deleted_at: data.deleted_at }), -1),
          data.webhook_id,
        );
      case 'webhooks.RecoveryRequested.v1': {
        const { webhook_id, partner_id: _, ...recovery } = data;
        return change(state, webhook_id, () => ({ recovery: { ...recovery, completed_at: null } }));
      }
      case 'webhooks.RecoveryCompleted.v1':
        return change(state, data.webhook_id, ({ recovery }) => ({
          recovery: recovery && { ...recovery, completed_at: data.completed_at },
        }));
      case 'webhooks.EndpointsSnapshotted.v1':
        return restored(data.endpoints);
      default:
        return unreachable(type);
    }
  },
};

export const endpointsStream = (partnerId: string): string => `${WEBHOOKS_PREFIX}${partnerId}`;
