import { OrderedMap, Map as PersistentMap } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import { DOMAIN_PLACES_PREFIX, type DomainSlotEvent } from './events.ts';

/** The slot of one domain among those of its tracker. */
export interface Slot {
  readonly domain_id: string;
  readonly hostname: string;
}

export interface FreedSlot extends Slot {
  /** ISO 8601. */
  readonly freed_at: string;
}

export interface Slots {
  readonly held: PersistentMap<string, Slot>;
  /** The most recently freed slots, newest last, so that a repeated DELETE gets the same response. */
  readonly freed: OrderedMap<string, FreedSlot>;
  /** Whether the tracker is deleted. */
  readonly closed: boolean;
}

interface OfTracker {
  readonly tracker_id: string;
  readonly at: number;
}

export type SlotCommand =
  | (OfTracker & {
      readonly type: 'Take';
      readonly partner_id: string;
      readonly domain_id: string;
      readonly hostname: string;
      /** Whether the request proved the partner's ownership by a TXT record. */
      readonly proven?: boolean;
    })
  | (OfTracker & { readonly type: 'Free'; readonly domain_id: string })
  | (OfTracker & { readonly type: 'Close' });

export type SlotRefusal = 'domain_limit' | 'tracker_deleted';

/** Domains that a tracker may have, failed ones among them. */
const MAX_DOMAINS = 10;
const REMEMBERED_FREED = 10;

/** Decides the slots of one tracker, which limit the number of its domains. */
export const slotsDecider: Decider<Slots, SlotCommand, DomainSlotEvent, SlotRefusal> = {
  initial: { held: PersistentMap(), freed: OrderedMap(), closed: false },

  decide(command, state) {
    const { tracker_id, at } = command;
    switch (command.type) {
      case 'Take': {
        const { partner_id, domain_id, hostname, proven = false } = command;
        if (state.closed) return refuse('tracker_deleted');
        if (heldSlot(state, hostname)) return accept([]);
        if (state.held.size >= MAX_DOMAINS) return refuse('domain_limit');
        const ids = { tracker_id, partner_id, domain_id, hostname };
        const data = { ...ids, taken_at: isoTime(at), ...(proven ? { proven } : {}) };
        return accept([{ type: 'domains.PlaceTaken.v1', data }]);
      }
      case 'Free': {
        const { domain_id } = command;
        const slot = state.held.get(domain_id);
        if (!slot) return accept([]);
        const data = { tracker_id, domain_id, hostname: slot.hostname, freed_at: isoTime(at) };
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
        const slot = state.held.get(data.domain_id);
        if (!slot) return state;
        const freed = state.freed.set(data.domain_id, { ...slot, freed_at: data.freed_at });
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
          held: PersistentMap(data.held.map((slot) => [slot.domain_id, slot])),
          freed: OrderedMap(data.freed.map((slot) => [slot.domain_id, slot])),
        };
      default:
        return unreachable(type);
    }
  },
};

/** Makes a snapshot event of the state. */
export const snapshotSlots = ({ held, freed, closed }: Slots): DomainSlotEvent => ({
  type: 'domains.PlacesSnapshotted.v1',
  data: { closed, held: heldSlots({ held }), freed: [...freed.values()] },
});

export const heldSlots = ({ held }: Pick<Slots, 'held'>): Slot[] => [...held.values()];

/** Returns the slot of a host name. */
export const heldSlot = (state: Slots, hostname: string): Slot | undefined =>
  heldSlots(state).find((slot) => slot.hostname === hostname);

/** Returns a domain's slot, held or recently freed. */
export const slotOf = ({ held, freed }: Slots, domainId: string): Slot | undefined =>
  held.get(domainId) ?? freed.get(domainId);

/** Returns whether a domain holds a slot of a tracker that is not deleted. */
export const mayStand = ({ held, closed }: Slots, domainId: string): boolean => !closed && held.has(domainId);

export const domainSlotsStream = (trackerId: string): string => `${DOMAIN_PLACES_PREFIX}${trackerId}`;
