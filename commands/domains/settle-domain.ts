import { domainStream } from '../../domain/domains/domain.ts';
import { domainPlacesStream, heldPlaces, mayStand, type Places } from '../../domain/domains/places.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type CommandContext, handle, load } from '../handle.ts';
import { domainAggregate, placesAggregate } from './aggregates.ts';

/** One domain of a tracker. */
export interface DomainOfTracker {
  readonly domain_id: string;
  readonly tracker_id: string;
  readonly hostname: string;
}

const placesOf = async (store: EventStore, trackerId: string): Promise<Places> =>
  (await load(store, placesAggregate, domainPlacesStream(trackerId))).state;

/** Claims the name that a place was taken for, or gives the place back. Harmless where that was done. */
export const completeClaim = async (
  store: EventStore,
  domain: DomainOfTracker & { readonly partner_id: string },
  context: CommandContext,
): Promise<void> => {
  if (!mayStand(await placesOf(store, domain.tracker_id), domain.domain_id)) return;
  const stream = domainStream(domain.hostname);
  const known = await load(store, domainAggregate, stream);
  if (known.state?.domain_id === domain.domain_id) return;
  const command = { type: 'Claim', ...domain, at: context.at } as const;
  const claimed = await handle(store, domainAggregate, stream, command, context, known);
  if (!claimed.ok) await freePlace(store, domain, context);
};

/** Gives a name up that has no place among its tracker's, or whose tracker is deleted. */
export const releaseUnlessKept = async (
  store: EventStore,
  domain: DomainOfTracker,
  context: CommandContext,
): Promise<void> => {
  if (mayStand(await placesOf(store, domain.tracker_id), domain.domain_id)) return;
  await release(store, domain, context);
};

/** Lets a deleted tracker take no more places. */
export const closePlaces = async (
  store: EventStore,
  tracker_id: string,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'Close', tracker_id, at: context.at } as const;
  await handle(store, placesAggregate, domainPlacesStream(tracker_id), command, context);
};

/** Gives up all names of a tracker. */
export const releaseAll = async (
  store: EventStore,
  tracker_id: string,
  context: CommandContext,
): Promise<void> => {
  for (const { domain_id, hostname } of heldPlaces(await placesOf(store, tracker_id))) {
    await release(store, { domain_id, hostname, tracker_id }, context);
  }
};

const release = async (
  store: EventStore,
  { domain_id, hostname }: DomainOfTracker,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'Release', domain_id, hostname, at: context.at } as const;
  await handle(store, domainAggregate, domainStream(hostname), command, context);
};

const freePlace = async (
  store: EventStore,
  { domain_id, tracker_id }: DomainOfTracker,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'Free', domain_id, tracker_id, at: context.at } as const;
  await handle(store, placesAggregate, domainPlacesStream(tracker_id), command, context);
};
