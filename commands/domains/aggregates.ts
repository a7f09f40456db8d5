import {
  type DomainCommand,
  type DomainRefusal,
  domainDecider,
  type Name,
  snapshotName,
} from '../../domain/domains/domain.ts';
import {
  type DomainEvent,
  type DomainSlotEvent,
  domainEvents,
  domainSlotEvents,
} from '../../domain/domains/events.ts';
import {
  type SlotCommand,
  type SlotRefusal,
  type Slots,
  slotsDecider,
  snapshotSlots,
} from '../../domain/domains/slots.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type Batcher, createBatcher } from '../batcher.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';

const nameAggregate: SnapshottedAggregate<Name, DomainCommand, DomainEvent, DomainRefusal> = {
  schemas: domainEvents,
  decider: domainDecider,
  snapshot: snapshotName,
};

export type NamesBatcher = Batcher<Name, DomainCommand, DomainRefusal>;

export const createNamesBatcher = (store: EventStore): NamesBatcher => createBatcher(store, nameAggregate);

const slotsAggregate: SnapshottedAggregate<Slots, SlotCommand, DomainSlotEvent, SlotRefusal> = {
  schemas: domainSlotEvents,
  decider: slotsDecider,
  snapshot: snapshotSlots,
};

export type SlotsBatcher = Batcher<Slots, SlotCommand, SlotRefusal>;

export const createSlotsBatcher = (store: EventStore): SlotsBatcher => createBatcher(store, slotsAggregate);
