import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

const instant = z.iso.datetime();
const domain = { domain_id: z.uuid(), hostname: z.string() };

/** Stream `domain-<hostname>`: who has a host name, and whether it points here. A look that tells nothing new has no event. */
export const domainEvents = {
  /** By its owner again: activation begins anew. */
  'domains.DomainClaimed.v1': z.object({
    ...domain,
    tracker_id: z.uuid(),
    partner_id: z.uuid(),
    claimed_at: instant,
  }),
  /** A look came to something else than the one before: why the name does not point here; null: it does again. */
  'domains.DomainLookChanged.v1': z.object({ ...domain, error: z.string().nullable(), looked_at: instant }),
  'domains.DomainActivated.v1': z.object({ ...domain, activated_at: instant }),
  'domains.DomainFailed.v1': z.object({ ...domain, error: z.string(), failed_at: instant }),
  /** The name is free for any tracker. */
  'domains.DomainReleased.v1': z.object({ ...domain, tracker_id: z.uuid(), released_at: instant }),
} as const;
export type DomainEvent = EventOf<typeof domainEvents>;

const place = { tracker_id: z.uuid(), domain_id: z.uuid() };

/** Stream `domains-<tracker>`: the places for domains that a tracker has. */
export const domainPlaceEvents = {
  'domains.PlaceTaken.v1': z.object({
    ...place,
    partner_id: z.uuid(),
    hostname: z.string(),
    taken_at: instant,
  }),
  'domains.PlaceFreed.v1': z.object({ ...place, hostname: z.string(), freed_at: instant }),
  /** The tracker is deleted: it takes no more places, and those that it has are given up. */
  'domains.PlacesClosed.v1': z.object({ tracker_id: z.uuid(), closed_at: instant }),
  /** The fold so far: commands start from the newest one. Events before it stay, for rebuilds. */
  'domains.PlacesSnapshotted.v1': z.object({
    closed: z.boolean(),
    held: z.array(z.object(domain)),
    /** The last ones that were freed. */
    freed: z.array(z.object({ ...domain, freed_at: instant })),
  }),
} as const;
export type DomainPlaceEvent = EventOf<typeof domainPlaceEvents>;

export const DOMAIN_PREFIX = 'domain-';
export const DOMAIN_PLACES_PREFIX = 'domains-';
