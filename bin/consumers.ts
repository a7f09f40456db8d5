import { eventCatalogue } from '../domain/event-catalogue.ts';
import { BILLING } from '../processors/billing/bill-completed-reveals.ts';
import type { Consumers } from '../processors/consumers.ts';
import { KEEPING } from '../processors/domains/keep-domains.ts';
import type { FollowedStreams } from '../processors/follow.ts';
import { ENRICHING } from '../processors/lookup/enrich-reveals.ts';
import { SETTLING } from '../processors/lookup/settle-reservations.ts';
import { COMPLETING } from '../processors/reveals/complete-reveals.ts';
import { QUEUEING } from '../processors/webhooks/queue-webhook-events.ts';
import { allProjections } from '../projections/all.ts';
import type { Projection } from '../projections/projection.ts';

const allProcessors: readonly FollowedStreams[] = [
  SETTLING,
  ENRICHING,
  BILLING,
  COMPLETING,
  QUEUEING,
  KEEPING,
];

/** All consumers of the log. */
export const CONSUMERS: Consumers = {
  projections: allProjections.map(({ name }) => name),
  processors: allProcessors.map(({ name }) => name),
};

type Followers = {
  readonly projections: readonly Pick<Projection, 'name' | 'types'>[];
  readonly processors: readonly FollowedStreams[];
};
const ALL: Followers = { projections: allProjections, processors: allProcessors };

/**
 * Returns the consumers of the events of one kind of stream: a projection that applies one of its types, or all types, and a
 * processor that handles such streams. Retention deletes a stream after these have passed it, so that another consumer
 * that an event has stopped holds up nothing that it never reads. All consumers follow a kind that the catalogue lacks.
 */
export const followersOf = (prefix: string, { projections, processors }: Followers = ALL): Consumers => {
  const kinds = eventCatalogue.filter(({ stream }) => stream.startsWith(prefix));
  const types = new Set(kinds.flatMap(({ events }) => Object.keys(events)));
  const isOverlapping = (followed: string): boolean =>
    followed.startsWith(prefix) || prefix.startsWith(followed);
  return {
    projections: projections
      .filter(({ types: applied }) => types.size === 0 || (applied?.some((type) => types.has(type)) ?? true))
      .map(({ name }) => name),
    processors: processors
      .filter(({ prefixes }) => types.size === 0 || prefixes.some(isOverlapping))
      .map(({ name }) => name),
  };
};
