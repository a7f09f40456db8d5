import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

const instant = z.iso.datetime();
const domain = { domain_id: z.uuid(), hostname: z.string() };

/** Stream `domain-<hostname>`: who claims a host name, and whose it is. A look that tells nothing new has no event. */
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
  /** The claim is gone. */
  'domains.DomainReleased.v1': z.object({ ...domain, tracker_id: z.uuid(), released_at: instant }),
  /** The fold so far: commands start from the newest one. Events before it stay, for rebuilds. */
  'domains.NameSnapshotted.v1': z.object({
    claims: z.array(
      z.object({
        ...domain,
        tracker_id: z.uuid(),
        partner_id: z.uuid(),
        status: z.enum(['pending', 'active', 'failed']),
        created_at: instant,
        claimed_at: instant,
        activated_at: instant.nullable(),
        last_error: z.string().nullable(),
        missed_since: instant.nullable(),
        changed_at: instant,
      }),
    ),
    /** Partners for which the name was ever active. */
    owners: z.array(z.uuid()),
  }),
} as const;
export type DomainEvent = EventOf<typeof domainEvents>;

const place = { tracker_id: z.uuid(), domain_id: z.uuid() };

/** Stream `domains-<tracker>`: the places for domains that a tracker has. */
export const domainSlotEvents = {
  'domains.PlaceTaken.v1': z.object({
    ...place,
    partner_id: z.uuid(),
    hostname: z.string(),
    taken_at: instant,
    /** The request showed by a TXT record that the name is the partner's. Left out: it did not have to. */
    proven: z.boolean().optional(),
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
export type DomainSlotEvent = EventOf<typeof domainSlotEvents>;

export const DOMAIN_PREFIX = 'domain-';
export const DOMAIN_PLACES_PREFIX = 'domains-';
