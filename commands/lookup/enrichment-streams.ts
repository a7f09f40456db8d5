import type { Result } from '../../domain/kernel/decider.ts';
import {
  type Enrichment,
  type EnrichmentCommand,
  enrichmentDecider,
} from '../../domain/lookup/enrichment.ts';
import {
  type EnrichmentEvent,
  enrichmentEvents,
  enrichmentStream,
  type IntakeEvent,
  intakeEvents,
} from '../../domain/lookup/events.ts';
import {
  hasUsageAhead,
  type Intake,
  type IntakeCommand,
  type IntakeRefusal,
  intakeDecider,
  snapshotIntake,
} from '../../domain/lookup/intake.ts';
import { type EventStore, StoreBusy, StreamExpired } from '../../event-store/port.ts';
import { type Batcher, createBatcher } from '../batcher.ts';
import {
  type Aggregate,
  type CommandContext,
  type Handled,
  handle,
  type Loaded,
  load,
  reportingAhead,
} from '../handle.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';

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

const aggregate: Aggregate<Enrichment, EnrichmentCommand, EnrichmentEvent, 'result_forgotten'> = {
  schemas: enrichmentEvents,
  decider: enrichmentDecider,
};

export interface EnrichmentStreams {
  readonly store: EventStore;
  /** Returns the keyed digest of a canonical address, for stream names. */
  readonly digest: (ip: string) => string;
}

/** The streams, and the providers that decide what a saved result lacks. */
export interface EnrichmentSources extends EnrichmentStreams {
  /** Returns the names of the providers that are asked now. */
  readonly configured: () => readonly string[];
}

/** The current generation of an address's enrichment and its stream. */
export interface KnownEnrichment extends Loaded<Enrichment> {
  readonly stream: string;
}

/** Generations that may end during one command; in practice one ends per 400 days. */
const MAX_GENERATIONS = 3;

/** Loads the current generation of an address's enrichment. @throws StoreUnavailable */
export async function loadEnrichment(
  { store, digest }: EnrichmentStreams,
  ip: string,
): Promise<KnownEnrichment> {
  const ofAddress = digest(ip);
  for (let generation = 0; ; generation += 1) {
    const stream = enrichmentStream(ofAddress, generation);
    let isExpired = false;
    const onExpired = (): void => {
      isExpired = true;
    };
    const loaded = await load(store, aggregate, stream, undefined, { onExpired });
    if (!isExpired && !loaded.state.forgotten) return { ...loaded, stream };
  }
}

/** Handles a command on the current generation of an address's enrichment. @throws what `handle` throws */
export async function handleEnrichment(
  streams: EnrichmentStreams,
  ip: string,
  command: EnrichmentCommand,
  context: CommandContext,
  known?: KnownEnrichment,
): Promise<Handled<Enrichment, EnrichmentEvent>> {
  let current = known ?? (await loadEnrichment(streams, ip));
  for (let attempt = 1; attempt <= MAX_GENERATIONS; attempt += 1) {
    const { stream } = current;
    const handled = await unlessExpired(handle(streams.store, aggregate, stream, command, context, current));
    if (handled?.ok) return handled.value;
    current = await loadEnrichment(streams, ip);
  }
  throw new StoreBusy('the enrichment of an address was forgotten repeatedly during one command');
}

/** Returns null if the stream was deleted meanwhile. */
async function unlessExpired<T, R extends string>(
  handling: Promise<Result<T, R>>,
): Promise<Result<T, R> | null> {
  try {
    return await handling;
  } catch (error) {
    if (error instanceof StreamExpired) return null;
    throw error;
  }
}
