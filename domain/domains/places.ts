import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import { DOMAIN_PLACES_PREFIX, type DomainPlaceEvent } from './events.ts';

/** One domain's place among those of its tracker. */
export interface Place {
  readonly domain_id: string;
  readonly hostname: string;
  /** ISO 8601; null: it is held. */
  readonly freed_at: string | null;
}

export interface Places {
  readonly byId: ReadonlyMap<string, Place>;
  /** The tracker is deleted. */
  readonly closed: boolean;
}

interface OfTracker {
  readonly tracker_id: string;
  readonly at: number;
}

export type PlaceCommand =
  | (OfTracker & {
      readonly type: 'Take';
      readonly partner_id: string;
      readonly domain_id: string;
      readonly hostname: string;
    })
  | (OfTracker & { readonly type: 'Free'; readonly domain_id: string })
  | (OfTracker & { readonly type: 'Close' });

export type PlaceRefusal = 'domain_limit' | 'tracker_deleted';

/** Decisions, Custom domains: domains that a tracker may have, failed ones among them. */
const MOST_DOMAINS = 10;

/** The places of one tracker: the boundary of how many domains it may have. */
export const places: Decider<Places, PlaceCommand, DomainPlaceEvent, PlaceRefusal> = {
  get initial(): Places {
    return { byId: new Map(), closed: false };
  },

  decide(command, state) {
    const { tracker_id, at } = command;
    switch (command.type) {
      case 'Take': {
        const { partner_id, domain_id, hostname } = command;
        if (state.closed) return refuse('tracker_deleted');
        if (heldPlace(state, hostname)) return accept([]);
        if (heldPlaces(state).length >= MOST_DOMAINS) return refuse('domain_limit');
        const data = { tracker_id, partner_id, domain_id, hostname, taken_at: isoTime(at) };
        return accept([{ type: 'domains.PlaceTaken.v1', data }]);
      }
      case 'Free': {
        const { domain_id } = command;
        const place = state.byId.get(domain_id);
        if (!place || place.freed_at !== null) return accept([]);
        const data = { tracker_id, domain_id, hostname: place.hostname, freed_at: isoTime(at) };
        return accept([{ type: 'domains.PlaceFreed.v1', data }]);
      }
      case 'Close':
        if (state.closed) return accept([]);
        return accept([{ type: 'domains.PlacesClosed.v1', data: { tracker_id, closed_at: isoTime(at) } }]);
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'domains.PlaceTaken.v1': {
        const { domain_id, hostname } = data;
        return put(state, { domain_id, hostname, freed_at: null });
      }
      case 'domains.PlaceFreed.v1': {
        const place = state.byId.get(data.domain_id);
        return place ? put(state, { ...place, freed_at: data.freed_at }) : state;
      }
      case 'domains.PlacesClosed.v1':
        return { ...state, closed: true };
      default:
        return unreachable(type);
    }
  },
};

const put = (state: Places, place: Place): Places => ({
  ...state,
  byId: new Map(state.byId).set(place.domain_id, place),
});

export const heldPlaces = ({ byId }: Places): Place[] =>
  [...byId.values()].filter(({ freed_at }) => freed_at === null);

/** The place that a name has. */
export const heldPlace = (state: Places, hostname: string): Place | undefined =>
  heldPlaces(state).find((place) => place.hostname === hostname);

/** Whether a domain may stand: it has its place, and its tracker is not deleted. */
export const mayStand = ({ byId, closed }: Places, domainId: string): boolean =>
  !closed && byId.get(domainId)?.freed_at === null;

export const domainPlacesStream = (trackerId: string): string => `${DOMAIN_PLACES_PREFIX}${trackerId}`;
