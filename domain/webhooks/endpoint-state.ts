import { Map as PersistentMap } from 'immutable';
import { type EndpointEvent, type SealedSecret, type Subscribable, WEBHOOK_HISTORY_MS } from './events.ts';
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
}

/** A partner's endpoints, and recently deleted ones. */
export interface Endpoints {
  readonly byId: PersistentMap<string, Endpoint>;
  readonly notDeleted: number;
  /** Ids of deleted endpoints that are still in `byId`: the latest, and those before them. */
  readonly deleted: { readonly last: readonly string[]; readonly before: readonly string[] };
}

/** Minimum number of remembered deleted endpoints; the maximum is twice that. A script may delete 60 a minute. */
const DELETED_REMEMBERED = 50;
/** Deleted endpoints that a snapshot holds. */
export const MAX_DELETED_IN_SNAPSHOT = 2 * DELETED_REMEMBERED;

export const isForgotten = ({ deleted_at }: Endpoint, at: number): boolean =>
  deleted_at !== null && at >= Date.parse(deleted_at) + WEBHOOK_HISTORY_MS;

export const put = (state: Endpoints, endpoint: Endpoint, more: number): Endpoints => ({
  ...state,
  byId: state.byId.set(endpoint.webhook_id, endpoint),
  notDeleted: state.notDeleted + more,
});

export const change = (state: Endpoints, id: string, over: (of: Endpoint) => Partial<Endpoint>, more = 0) => {
  const endpoint = state.byId.get(id);
  return endpoint ? put(state, { ...endpoint, ...over(endpoint) }, more) : state;
};

export const evictOldDeleted = (state: Endpoints, webhookId: string): Endpoints => {
  const { last, before } = state.deleted;
  const deleted = [...last, webhookId];
  if (deleted.length < DELETED_REMEMBERED) return { ...state, deleted: { last: deleted, before } };
  return { ...state, byId: state.byId.deleteAll(before), deleted: { last: [], before: deleted } };
};

/** Makes a snapshot event of the state, with deleted endpoints first, in the order of deletion. */
export const snapshotEndpoints = ({ byId, deleted }: Endpoints): EndpointEvent => {
  const gone = [...deleted.before, ...deleted.last];
  const rest = byId.deleteAll(gone);
  const endpoints = [...gone.flatMap((id) => byId.get(id) ?? []), ...rest.values()];
  return {
    type: 'webhooks.EndpointsSnapshotted.v1',
    data: { endpoints: endpoints.map((endpoint) => ({ ...endpoint, events: [...endpoint.events] })) },
  };
};

export const forgetDeleted = (at: number, state: Endpoints): EndpointEvent[] => {
  const byId = state.byId.filterNot((endpoint) => isForgotten(endpoint, at));
  return byId.size === state.byId.size ? [] : [snapshotEndpoints({ ...state, byId })];
};

export const restored = (endpoints: readonly Endpoint[]): Endpoints => {
  const gone = endpoints.flatMap(({ webhook_id, deleted_at }) => (deleted_at === null ? [] : [webhook_id]));
  const inBefore = gone.length < DELETED_REMEMBERED ? 0 : DELETED_REMEMBERED;
  return {
    byId: PersistentMap(endpoints.map((endpoint) => [endpoint.webhook_id, endpoint])),
    notDeleted: endpoints.length - gone.length,
    deleted: { last: gone.slice(inBefore), before: gone.slice(0, inBefore) },
  };
};
