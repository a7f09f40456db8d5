import { v7 as uuid } from 'uuid';
import { type Domain, domainStream, type Name } from '../../domain/domains/domain.ts';
import { isDomainName } from '../../domain/domains/hostname.ts';
import { domainPlacesStream, heldPlace, type PlaceRefusal, placeOf } from '../../domain/domains/places.ts';
import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { type CommandContext, handle, load } from '../handle.ts';
import { createPlacesBatcher, domainAggregate } from './aggregates.ts';

type TrackerRefusal = 'tracker_not_found' | 'tracker_deleted';
export type ClaimRefusal = TrackerRefusal | PlaceRefusal | 'invalid_domain' | 'domain_taken';
export type ReleaseRefusal = TrackerRefusal | 'domain_not_found';

export interface ClaimedDomain {
  readonly domain: Domain;
  /** null: nothing was appended, or its place is not known. */
  readonly position: Position | null;
}

export interface ReleasedDomain {
  readonly hostname: string;
  /** ISO 8601. */
  readonly deleted_at: string;
  readonly position: Position | null;
}

/** Which tracker of which partner. */
export interface TrackerName {
  readonly partner_id: string;
  readonly tracker_id: string;
}

/** The commands on custom domains. Each may be repeated. */
export interface DomainCommands {
  /** Begins a domain's activation, or begins a failed one's anew. */
  claim(
    of: TrackerName,
    hostname: string,
    context: CommandContext,
  ): Promise<Result<ClaimedDomain, ClaimRefusal>>;
  release(
    of: TrackerName,
    domainId: string,
    context: CommandContext,
  ): Promise<Result<ReleasedDomain, ReleaseRefusal>>;
}

export interface DomainCommandParts {
  readonly store: EventStore;
  /** The service's own name, which nobody can have. */
  readonly serviceHost: string;
  /** Why a partner's tracker can have no domains; null: it can. */
  readonly trackerRefusal: (of: TrackerName) => Promise<TrackerRefusal | null>;
}

/**
 * A domain takes two steps on two streams, as no append spans both: a place of its tracker's, which is the boundary of
 * how many it may have, and then the name, which is the boundary of who has it. Whoever dies between them is completed
 * by `processors/domains/keep-domains.ts` (docs/adr, "A domain's place and its name").
 */
export const createDomainCommands = ({
  store,
  serviceHost,
  trackerRefusal,
}: DomainCommandParts): DomainCommands => {
  const batcher = createPlacesBatcher(store);

  const free = ({ tracker_id }: TrackerName, domain_id: string, context: CommandContext) =>
    batcher.submit(
      domainPlacesStream(tracker_id),
      { type: 'Free', tracker_id, domain_id, at: context.at },
      context,
      ({ freed }) => freed.get(domain_id)?.freed_at ?? null,
    );

  return {
    claim: async (of, hostname, context) => {
      if (!isDomainName(hostname, serviceHost)) return refuse('invalid_domain');
      const refused = await trackerRefusal(of);
      if (refused !== null) return refuse(refused);
      const { tracker_id, partner_id } = of;
      const stream = domainStream(hostname);
      const known = await load(store, domainAggregate, stream);
      // A place for a name that is somebody else's would only be given back.
      if (isOthers(known.state, tracker_id)) return refuse('domain_taken');
      const ids = { hostname, tracker_id, partner_id, at: context.at };
      const taken = await batcher.submit(
        domainPlacesStream(tracker_id),
        { type: 'Take', ...ids, domain_id: uuid() },
        context,
        (state) => heldPlace(state, hostname),
      );
      if (!taken.ok) return taken;
      const place = taken.value.value;
      if (!place) throw new TypeError('a place that is not there was not refused');
      const { domain_id } = place;
      const claimed = await handle(
        store,
        domainAggregate,
        stream,
        { type: 'Claim', ...ids, domain_id },
        context,
        known,
      );
      if (!claimed.ok) {
        await free(of, domain_id, context);
        return claimed;
      }
      const { state: domain, position } = claimed.value;
      if (!domain) throw new TypeError('a name that nobody has was not refused');
      return accept({ domain, position });
    },

    release: async (of, domain_id, context) => {
      const refused = await trackerRefusal(of);
      if (refused !== null) return refuse(refused);
      const place = await batcher.look(domainPlacesStream(of.tracker_id), (state) =>
        placeOf(state, domain_id),
      );
      if (!place) return refuse('domain_not_found');
      const { hostname } = place;
      // First the place, without which no name may stand: whoever completes this does the rest.
      const freed = await free(of, domain_id, context);
      const deleted_at = freed.ok ? freed.value.value : null;
      const released = await handle(
        store,
        domainAggregate,
        domainStream(hostname),
        { type: 'Release', domain_id, hostname, at: context.at },
        context,
      );
      if (!released.ok || deleted_at === null) throw new TypeError('a release was refused');
      return accept({ hostname, deleted_at, position: released.value.position });
    },
  };
};

const isOthers = (name: Name, trackerId: string): boolean => name !== null && name.tracker_id !== trackerId;
