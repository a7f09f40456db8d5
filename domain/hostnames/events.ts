import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { shownText } from '../kernel/visibility.ts';

const instant = z.iso.datetime();
const domain = { domain_id: z.uuid(), hostname: shownText() };

/** Stream `domain-<hostname>`: the claims and the owner of a host name. A check without a new result adds no event. */
export const domainEvents = {
  /** Repeated by the same tracker, it restarts the activation. */
  'domains.DomainClaimed.v1': z.object({
    ...domain,
    tracker_id: z.uuid(),
    partner_id: z.uuid(),
    claimed_at: instant,
  }),
  /** A check had a new result. `error`: why the name does not point to the service; null: it does again. */
  'domains.DomainLookChanged.v1': z.object({ ...domain, error: shownText().nullable(), looked_at: instant }),
  'domains.DomainActivated.v1': z.object({ ...domain, activated_at: instant }),
  'domains.DomainFailed.v1': z.object({ ...domain, error: shownText(), failed_at: instant }),
  'domains.DomainReleased.v1': z.object({ ...domain, tracker_id: z.uuid(), released_at: instant }),
  /** Snapshot of the state, from which commands start. Earlier events stay, for rebuilds. */
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
        last_error: shownText().nullable(),
        missed_since: instant.nullable(),
        changed_at: instant,
      }),
    ),
    /** Partners that the name was ever active for. */
    owners: z.array(z.uuid()),
  }),
} as const;
export type DomainEvent = EventOf<typeof domainEvents>;

const slot = { tracker_id: z.uuid(), domain_id: z.uuid() };

/** Stream `domains-<tracker>`: the slots for a tracker's custom domains. */
export const domainSlotEvents = {
  'domains.PlaceTaken.v1': z.object({
    ...slot,
    partner_id: z.uuid(),
    hostname: shownText(),
    taken_at: instant,
    /** The request proved the partner's ownership by a TXT record. Omitted: no proof was needed. */
    proven: z.boolean().optional(),
  }),
  'domains.PlaceFreed.v1': z.object({ ...slot, hostname: shownText(), freed_at: instant }),
  /** The tracker was deleted: its slots are closed and its names released. */
  'domains.PlacesClosed.v1': z.object({ tracker_id: z.uuid(), closed_at: instant }),
  /** Snapshot of the state, from which commands start. Earlier events stay, for rebuilds. */
  'domains.PlacesSnapshotted.v1': z.object({
    closed: z.boolean(),
    held: z.array(z.object(domain)),
    /** The most recently freed slots. */
    freed: z.array(z.object({ ...domain, freed_at: instant })),
  }),
} as const;
export type DomainSlotEvent = EventOf<typeof domainSlotEvents>;

export const DOMAIN_PREFIX = 'domain-';
export const DOMAIN_PLACES_PREFIX = 'domains-';
