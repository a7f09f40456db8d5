import { OrderedMap, Map as PersistentMap } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import { DOMAIN_PLACES_PREFIX, type DomainPlaceEvent } from './events.ts';

/** One domain's place among those of its tracker. */
export interface Place {
  readonly domain_id: string;
  readonly hostname: string;
}

export interface FreedPlace extends Place {
  /** ISO 8601. */
  readonly freed_at: string;
}

export interface Places {
  /** By the domain's id. */
  readonly held: PersistentMap<string, Place>;
  /** The last ones that were freed, the newest last: so that a repeated DELETE gets the same answer. */
  readonly freed: OrderedMap<string, FreedPlace>;
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
      /** The request has shown by a TXT record that the name is the partner's. */
      readonly proven?: boolean;
    })
  | (OfTracker & { readonly type: 'Free'; readonly domain_id: string })
  | (OfTracker & { readonly type: 'Close' });

export type PlaceRefusal = 'domain_limit' | 'tracker_deleted';

/** Decisions, Custom domains: domains that a tracker may have, failed ones among them. */
const MOST_DOMAINS = 10;
const REMEMBERED_FREED = 10;

/** The places of one tracker: the boundary of how many domains it may have. */
export const places: Decider<Places, PlaceCommand, DomainPlaceEvent, PlaceRefusal> = {
  initial: { held: PersistentMap(), freed: OrderedMap(), closed: false },

  decide(command, state) {
    const { tracker_id, at } = command;
    switch (command.type) {
      case 'Take': {
        const { partner_id, domain_id, hostname, proven = false } = command;
        if (state.closed) return refuse('tracker_deleted');
        if (heldPlace(state, hostname)) return accept([]);
        if (state.held.size >= MOST_DOMAINS) return refuse('domain_limit');
        const ids = { tracker_id, partner_id, domain_id, hostname };
        const data = { ...ids, taken_at: isoTime(at), ...(proven ? { proven } : {}) };
        return accept([{ type: 'domains.PlaceTaken.v1', data }]);
      }
      case 'Free': {
        const { domain_id } = command;
        const place = state.held.get(domain_id);
        if (!place) return accept([]);
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
        return { ...state, held: state.held.set(domain_id, { domain_id, hostname }) };
      }
      case 'domains.PlaceFreed.v1': {
        const place = state.held.get(data.domain_id);
        if (!place) return state;
        const freed = state.freed.set(data.domain_id, { ...place, freed_at: data.freed_at });
        return {
          ...state,
          held: state.held.delete(data.domain_id),
          freed: freed.size > REMEMBERED_FREED ? freed.rest() : freed,
        };
      }
      case 'domains.PlacesClosed.v1':
        return { ...state, closed: true };
      case 'domains.PlacesSnapshotted.v1':
        return {
          closed: data.closed,
          held: PersistentMap(data.held.map((place) => [place.domain_id, place])),
          freed: OrderedMap(data.freed.map((place) => [place.domain_id, place])),
        };
      default:
        return unreachable(type);
    }
  },
};

/** Writes the fold down as an event. */
export const snapshotPlaces = ({ held, freed, closed }: Places): DomainPlaceEvent => ({
  type: 'domains.PlacesSnapshotted.v1',
  data: { closed, held: heldPlaces({ held }), freed: [...freed.values()] },
});

export const heldPlaces = ({ held }: Pick<Places, 'held'>): Place[] => [...held.values()];

/** The place that a name has. */
export const heldPlace = (state: Places, hostname: string): Place | undefined =>
  heldPlaces(state).find((place) => place.hostname === hostname);

/** A domain's place, held or freed not long ago. */
export const placeOf = ({ held, freed }: Places, domainId: string): Place | undefined =>
  held.get(domainId) ?? freed.get(domainId);

/** Whether a domain may stand: it has its place, and its tracker is not deleted. */
export const mayStand = ({ held, closed }: Places, domainId: string): boolean =>
  !closed && held.has(domainId);

export const domainPlacesStream = (trackerId: string): string => `${DOMAIN_PLACES_PREFIX}${trackerId}`;
