import { type IntakeEvent, intakeEvents } from '../../domain/lookup/events.ts';
import {
  hasUsageAhead,
  type Intake,
  type IntakeCommand,
  type IntakeRefusal,
  intakeDecider,
  snapshotIntake,
} from '../../domain/lookup/intake.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type Batcher, createBatcher } from '../batcher.ts';
import { reportingAhead } from '../reporting-ahead.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';
import type { EnrichmentStreams } from './generations.ts';

export const intakeAggregate: SnapshottedAggregate<Intake, IntakeCommand, IntakeEvent, IntakeRefusal> = {
  schemas: intakeEvents,
  decider: reportingAhead(intakeDecider, 'allowance', (state, command) => hasUsageAhead(state, command.at)),
  snapshot: snapshotIntake,
  sizeOf: ({ open }) => open.size,
};

export type IntakeBatcher = Batcher<Intake, IntakeCommand, IntakeRefusal>;

export const createIntakeBatcher = (store: EventStore): IntakeBatcher =>
  createBatcher(store, intakeAggregate);

export interface LookupStreams extends EnrichmentStreams {
  readonly intake: IntakeBatcher;
}
