import {
  type DomainCommand,
  type DomainRefusal,
  domain,
  type Name,
  snapshotName,
} from '../../domain/domains/domain.ts';
import {
  type DomainEvent,
  type DomainPlaceEvent,
  domainEvents,
  domainPlaceEvents,
} from '../../domain/domains/events.ts';
import {
  type PlaceCommand,
  type PlaceRefusal,
  type Places,
  places,
  snapshotPlaces,
} from '../../domain/domains/places.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type Batcher, createBatcher } from '../batcher.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';

/** One host name. */
const nameAggregate: SnapshottedAggregate<Name, DomainCommand, DomainEvent, DomainRefusal> = {
  schemas: domainEvents,
  decider: domain,
  snapshot: snapshotName,
};

export type NamesBatcher = Batcher<Name, DomainCommand, DomainRefusal>;

export const createNamesBatcher = (store: EventStore): NamesBatcher => createBatcher(store, nameAggregate);

/** The places of one tracker. */
const placesAggregate: SnapshottedAggregate<Places, PlaceCommand, DomainPlaceEvent, PlaceRefusal> = {
  schemas: domainPlaceEvents,
  decider: places,
  snapshot: snapshotPlaces,
};

export type PlacesBatcher = Batcher<Places, PlaceCommand, PlaceRefusal>;

export const createPlacesBatcher = (store: EventStore): PlacesBatcher =>
  createBatcher(store, placesAggregate);
