import { Map as PersistentMap, OrderedMap as PersistentOrderedMap } from 'immutable';
import { parseAddress } from '../kernel/address.ts';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isName, isText } from '../kernel/text.ts';
import { isoTime } from '../kernel/time.ts';
import { TRACKERS_PREFIX, type TrackerEvent } from './events.ts';

/**
 * An origin on which a tracker's pixel may run (contract, Trackers 1): a serialised origin, `https://host[:port]`, `http://` for
 * localhost and loopback addresses only, or `https://*.host` for all subdomains.
 */
type Origin = string;

const WILDCARD = 'https://*.';
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_HOST_LENGTH = 253;
const MAX_ORIGIN_LENGTH = 'https://'.length + MAX_HOST_LENGTH + ':65535'.length;

/** Returns whether the text is an origin in exactly the form that browsers send. */
export function isOrigin(text: string): boolean {
  const wildcard = text.startsWith(WILDCARD);
  const plain = wildcard ? `https://${text.slice(WILDCARD.length)}` : text;
  // The parser takes quadratic time for long names with non-ASCII letters.
  if (plain.length > MAX_ORIGIN_LENGTH || !URL.canParse(plain)) return false;
  const url = new URL(plain);
  if (url.origin !== plain) return false;
  if (wildcard) return url.port === '' && isHostName(url.hostname) && url.hostname.includes('.');
  if (url.protocol === 'https:') return isHost(url.hostname);
  return url.protocol === 'http:' && isLoopback(url.hostname);
}

/** Returns whether a page's origin (a browser's `Origin` header) is one of the tracker's. */
export const originMatches = (origins: readonly Origin[], page: string): boolean =>
  origins.includes(page) ||
  // Parsed once: fifty wildcards may have the same ending.
  (page.startsWith('https://') && origins.some((origin) => isBelow(origin, page)) && isOrigin(page));

function isBelow(origin: Origin, page: string): boolean {
  // The suffix keeps its dot, so that neither the apex nor a name with the same ending matches.
  const suffix = origin.slice('https://*'.length);
  return origin.startsWith(WILDCARD) && page.length > `https://${suffix}`.length && page.endsWith(suffix);
}

/**
 * Returns all entries that would match a page's origin: the origin itself, and wildcards. It parses the origin once, because
 * any visitor may send one of a hundred labels.
 */
export function originsMatching(page: string): readonly Origin[] {
  if (!page.startsWith('https://') || !isOrigin(page)) return [page];
  const { host, port } = new URL(page);
  if (port !== '' || isIp(host)) return [page];
  const labels = host.split('.');
  return [page, ...labels.slice(1, -1).map((_, index) => `${WILDCARD}${labels.slice(index + 1).join('.')}`)];
}

const isHost = (host: string): boolean => isIp(host) || isHostName(host);

const isIp = (host: string): boolean => parseAddress(host.replace(/^\[(.*)\]$/, '$1')) !== null;

const isHostName = (host: string): boolean =>
  host.length <= MAX_HOST_LENGTH && !isIp(host) && host.split('.').every((label) => LABEL.test(label));

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || (host.startsWith('127.') && isIp(host));

export interface Tracker {
  readonly tracker_id: string;
  readonly name: string;
  readonly origins: readonly string[];
  readonly customer_reference: string | null;
  readonly created_at: string;
  readonly disabled_at: string | null;
}

/** A partner's trackers, and recently deleted ones. */
export interface Trackers {
  readonly byId: PersistentMap<string, Tracker>;
  /** Ids and times (ISO 8601) of recent deletions, the latest last. */
  readonly deleted: PersistentOrderedMap<string, string>;
}

/** Deletions that stay when there are twice as many, so that a snapshot holds them in one append. */
const DELETED_REMEMBERED = 2_500;

/** Returns when a recently deleted tracker was deleted; undefined if it was not, or is no longer remembered. */
export const deletedAt = ({ deleted }: Trackers, trackerId: string): string | undefined =>
  deleted.get(trackerId);

interface TrackerRef {
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly at: number;
}

export type TrackerCommand =
  | (TrackerRef & {
      readonly type: 'Create';
      readonly name: string;
      readonly origins: readonly string[];
      readonly customer_reference: string | null;
      /** Trackers per partner, without deleted ones. */
      readonly limit: number;
    })
  | (TrackerRef & {
      readonly type: 'Update';
      /** Fields that stay as they are are left out. */
      readonly changes: Partial<TrackerFields>;
    })
  | (TrackerRef & { readonly type: 'Disable' | 'Enable' | 'Delete' });

export type TrackerRefusal =
  | 'invalid_tracker'
  | 'invalid_origin'
  | 'tracker_limit'
  | 'tracker_not_found'
  | 'tracker_deleted';

const MAX_NAME_LENGTH = 200;
const MAX_ORIGINS = 50;

const areOrigins = (texts: readonly string[]): boolean =>
  texts.length >= 1 &&
  texts.length <= MAX_ORIGINS &&
  new Set(texts).size === texts.length &&
  texts.every(isOrigin);

function create(command: Extract<TrackerCommand, { type: 'Create' }>, state: Trackers) {
  const { partner_id, tracker_id, origins, customer_reference, limit, at } = command;
  const name = command.name.trim();
  if (state.byId.has(tracker_id) || deletedAt(state, tracker_id) !== undefined)
    return accept<TrackerEvent[]>([]);
  const refusal = refusalOf(command);
  if (refusal !== null) return refuse<TrackerRefusal>(refusal);
  if (state.byId.size >= limit) return refuse<TrackerRefusal>('tracker_limit');
  return accept<TrackerEvent[]>([
    {
      type: 'trackers.TrackerCreated.v1',
      data: {
        tracker_id,
        partner_id,
        name,
        origins: [...origins],
        customer_reference,
        created_at: isoTime(at),
      },
    },
  ]);
}

type TrackerFields = Pick<Tracker, 'name' | 'origins' | 'customer_reference'>;

/** Why a tracker cannot have these fields; null: it can. */
function refusalOf({
  name,
  origins,
  customer_reference = null,
}: Partial<TrackerFields>): TrackerRefusal | null {
  if (name !== undefined && !isName(name.trim(), MAX_NAME_LENGTH)) return 'invalid_tracker';
  if (customer_reference !== null && !isText(customer_reference, MAX_NAME_LENGTH)) return 'invalid_tracker';
  return origins === undefined || areOrigins(origins) ? null : 'invalid_origin';
}

function update(
  { partner_id, tracker_id, changes, at }: Extract<TrackerCommand, { type: 'Update' }>,
  tracker: Tracker,
) {
  const before = fieldsOf(tracker);
  const after = { ...before, ...changes, name: (changes.name ?? before.name).trim() };
  if (JSON.stringify(after) === JSON.stringify(before)) return accept<TrackerEvent[]>([]);
  const data = { tracker_id, partner_id, ...after, origins: [...after.origins], updated_at: isoTime(at) };
  return accept<TrackerEvent[]>([{ type: 'trackers.TrackerUpdated.v1', data }]);
}

const fieldsOf = ({ name, origins, customer_reference }: TrackerFields): TrackerFields => ({
  name,
  origins,
  customer_reference,
});

export const trackersDecider: Decider<Trackers, TrackerCommand, TrackerEvent, TrackerRefusal> = {
  initial: { byId: PersistentMap(), deleted: PersistentOrderedMap() },

  decide(command, state) {
    const { partner_id, tracker_id, at } = command;
    if (command.type === 'Create') return create(command, state);
    // Fields are judged before states (contract, Requests 3).
    const refusal = command.type === 'Update' ? refusalOf(command.changes) : null;
    if (refusal !== null) return refuse(refusal);
    if (deletedAt(state, tracker_id) !== undefined) {
      return command.type === 'Delete' ? accept([]) : refuse('tracker_deleted');
    }
    const tracker = state.byId.get(tracker_id);
    if (!tracker) return refuse('tracker_not_found');
    const ids = { tracker_id, partner_id };
    switch (command.type) {
      case 'Update':
        return update(command, tracker);
      case 'Disable':
        return tracker.disabled_at !== null
          ? accept([])
          : accept([{ type: 'trackers.TrackerDisabled.v1', data: { ...ids, disabled_at: isoTime(at) } }]);
      case 'Enable':
        return tracker.disabled_at === null
          ? accept([])
          : accept([{ type: 'trackers.TrackerEnabled.v1', data: { ...ids, enabled_at: isoTime(at) } }]);
      case 'Delete':
        return accept([{ type: 'trackers.TrackerDeleted.v1', data: { ...ids, deleted_at: isoTime(at) } }]);
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'trackers.TrackerCreated.v1': {
        const { partner_id: _, ...tracker } = data;
        return put(state, { ...tracker, disabled_at: null });
      }
      case 'trackers.TrackerUpdated.v1':
        return change(state, data.tracker_id, fieldsOf(data));
      case 'trackers.TrackerDisabled.v1':
        return change(state, data.tracker_id, { disabled_at: data.disabled_at });
      case 'trackers.TrackerEnabled.v1':
        return change(state, data.tracker_id, { disabled_at: null });
      case 'trackers.TrackerDeleted.v1':
        return remove(state, data.tracker_id, data.deleted_at);
      case 'trackers.TrackersSnapshotted.v1':
        return {
          byId: PersistentMap(data.trackers.map((tracker) => [tracker.tracker_id, tracker])),
          deleted: remembered(data.deleted),
        };
      case 'trackers.TrackersSnapshotPart.v1':
        return {
          ...state,
          byId: data.trackers.reduce((byId, tracker) => byId.set(tracker.tracker_id, tracker), state.byId),
          ...(data.part === data.parts ? { deleted: remembered(data.deleted) } : {}),
        };
      default:
        return unreachable(type);
    }
  },
};

const put = (state: Trackers, tracker: Tracker): Trackers => ({
  ...state,
  byId: state.byId.set(tracker.tracker_id, tracker),
});

function change(state: Trackers, id: string, over: Partial<Tracker>): Trackers {
  const tracker = state.byId.get(id);
  return tracker ? put(state, { ...tracker, ...over }) : state;
}

function remove(state: Trackers, id: string, at: string): Trackers {
  const deleted = state.deleted.set(id, at);
  return {
    byId: state.byId.delete(id),
    deleted: deleted.size >= 2 * DELETED_REMEMBERED ? deleted.takeLast(DELETED_REMEMBERED) : deleted,
  };
}

/** Snapshots of releases before 0.2.0 held all deletions. */
const remembered = (deleted: readonly (readonly [string, string])[]): Trackers['deleted'] =>
  PersistentOrderedMap(
    deleted.slice(1 - 2 * DELETED_REMEMBERED).map(([id, at]): [string, string] => [id, at]),
  );

export const trackersStream = (partnerId: string): string => `${TRACKERS_PREFIX}${partnerId}`;

/** JSON bytes per part: each part is an append with its metadata. A thousand trackers with 50 long origins have 13 MB. */
const PART_BYTES = 786_432;

/** Makes a snapshot of the state, as one event or several consecutive ones. */
export function snapshotTrackers({ byId, deleted }: Trackers): readonly TrackerEvent[] {
  const allDeleted = [...deleted];
  const parts: StoredTracker[][] = [[]];
  let bytes = 0;
  const add = (more: number): void => {
    bytes += more;
    if (bytes <= PART_BYTES) return;
    parts.push([]);
    bytes = more;
  };
  for (const { origins, ...tracker } of byId.values()) {
    add(mostBytes(tracker, origins));
    parts.at(-1)?.push({ ...tracker, origins: [...origins] });
  }
  add(allDeleted.length * DELETED_BYTES);
  const [first = []] = parts;
  if (parts.length === 1) {
    return [{ type: 'trackers.TrackersSnapshotted.v1', data: { trackers: first, deleted: allDeleted } }];
  }
  return parts.map((trackers, index) => ({
    type: 'trackers.TrackersSnapshotPart.v1',
    data: {
      trackers,
      deleted: index + 1 === parts.length ? allDeleted : [],
      part: index + 1,
      parts: parts.length,
    },
  }));
}

const DELETED_BYTES = 80;

/** Returns an upper bound of JSON bytes (origins are ASCII), because serializing only to measure would double the work. */
const mostBytes = (
  { name, customer_reference }: Pick<Tracker, 'name' | 'customer_reference'>,
  origins: readonly string[],
): number =>
  300 +
  4 * (name.length + (customer_reference?.length ?? 0)) +
  origins.reduce((sum, origin) => sum + origin.length + 3, 0);

type StoredTracker = Extract<
  TrackerEvent,
  { type: 'trackers.TrackersSnapshotted.v1' }
>['data']['trackers'][number];

/** Returns an event's part number in a snapshot in parts; null if it is none. */
export const partOfTrackers = ({
  type,
  data,
}: TrackerEvent): { readonly part: number; readonly parts: number } | null =>
  type === 'trackers.TrackersSnapshotPart.v1' ? data : null;
