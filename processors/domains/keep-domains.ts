import type pg from 'pg';
import {
  closeSlots,
  completeClaim,
  createNamesBatcher,
  createSlotsBatcher,
  releaseAll,
  releaseUnlessKept,
} from '../../commands/domains/manage-domains.ts';
import type { CommandContext } from '../../commands/handle.ts';
import {
  DOMAIN_PLACES_PREFIX,
  DOMAIN_PREFIX,
  domainEvents,
  domainSlotEvents,
} from '../../domain/domains/events.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { TRACKERS_PREFIX, trackerEvents } from '../../domain/trackers/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import { DUE_CHANNEL, notifyIfRoom } from '../../platform/postgres/notifications.ts';
import { SYNCHRONOUS_COMMIT } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { FollowedStreams, FollowingProcessor } from '../follow.ts';

export const KEEPING: FollowedStreams = {
  name: 'keep-domains',
  prefixes: [DOMAIN_PREFIX, DOMAIN_PLACES_PREFIX, TRACKERS_PREFIX],
};

const followed = { ...domainEvents, ...domainSlotEvents, ...trackerEvents };

/**
 * Completes domain changes that span two streams: a slot without its name, a name without its slot, the domains of a
 * deleted tracker. Each handler compares the current state of both streams, so late and repeated events are harmless. It
 * also schedules the CNAME check of a claimed name.
 */
export function keepDomains({ store, pool, clock }: ProcessorDeps): FollowingProcessor {
  const deps = { names: createNamesBatcher(store), slots: createSlotsBatcher(store) };
  return {
    ...KEEPING,
    async handle(stored) {
      const event = readEvent(followed, stored);
      const at = clock.now();
      const context = contextOf(stored, at);
      switch (event?.type) {
        case 'domains.PlaceTaken.v1':
          return completeClaim(deps, event.data, context);
        case 'domains.PlaceFreed.v1':
          return releaseUnlessKept(deps, event.data, context);
        case 'domains.DomainClaimed.v1':
          await scheduleCheck(pool, event.data, at);
          return releaseUnlessKept(deps, event.data, context);
        case 'domains.DomainReleased.v1':
          return cancelChecks(pool, event.data.domain_id);
        case 'trackers.TrackerDeleted.v1':
          return closeSlots(deps, event.data.tracker_id, context);
        case 'domains.PlacesClosed.v1':
          return releaseAll(deps, event.data.tracker_id, context);
      }
    },
  };
}

/** The second step of a change is its caller's too. */
function contextOf({ id, metadata }: RecordedEvent, at: number): CommandContext {
  const { $correlationId, partner_id, key_id, user_id } = metadata;
  return {
    correlationId: $correlationId,
    causationId: id,
    at,
    ...(partner_id === undefined ? {} : { partnerId: partner_id }),
    ...(key_id === undefined ? {} : { keyId: key_id }),
    ...(user_id === undefined ? {} : { userId: user_id }),
  };
}

async function scheduleCheck(
  pool: pg.Pool,
  { domain_id, hostname, partner_id }: Readonly<Record<'domain_id' | 'hostname' | 'partner_id', string>>,
  at: number,
): Promise<void> {
  await pool.query(
    `with look as (
       insert into work.domain_look (domain_id, hostname, due_at, recorded_at, partner_id)
       select $1::uuid, $2, $3::timestamptz, $3::timestamptz, $5::uuid from ${SYNCHRONOUS_COMMIT}
       on conflict (domain_id) do update set (due_at, recorded_at) = row (excluded.due_at, excluded.recorded_at))
     select ${notifyIfRoom('$4', "''")}`,
    [domain_id, hostname, new Date(at), DUE_CHANNEL, partner_id],
  );
}

async function cancelChecks(pool: pg.Pool, domainId: string): Promise<void> {
  await pool.query('delete from work.domain_look where domain_id = $1', [domainId]);
}
