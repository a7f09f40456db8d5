import { randomFillSync } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import { accept, type Decider, type Result } from '../domain/kernel/decider.ts';
import { type EventSchemas, readEvent } from '../domain/kernel/events.ts';
import {
  type Appended,
  type EventMetadata,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  OutcomeUnknown,
  type Position,
  type ReadOptions,
  type RecordedEvent,
  type Revision,
  StoreBusy,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../event-store/port.ts';
import { type Clock, type FutureTimeMark, iso, reportFutureTime } from '../platform/clock/clock.ts';
import { backoffMs, pause } from '../platform/clock/waiting.ts';
import { inSpan, type SpanOf, traceparent } from '../platform/telemetry/spans.ts';

/** Random bytes for the next ids: asking for those of one id takes four times as long as making it. */
const random = new Uint8Array(4_096);
const RANDOM_BYTES = 16;
let used = random.length;

/** Makes a UUID v7: ids of a later millisecond sort after earlier ones, which keeps indexes small. */
export function newId(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += RANDOM_BYTES;
  return uuid({ random: random.subarray(used - RANDOM_BYTES, used) });
}

/** A command is retried until both the number of conflicts in a row and the time are used up. */
const MAX_CONFLICTS = 12;
const MAX_RETRY_MS = 2_000;
const DELAY = { firstMs: 4, mostMs: 64 } as const;

/**
 * Creates the wait of one command between a conflict and the next read. The conflict may come from a revision that no
 * reader sees yet: a cluster's leader rejects on events that are not replicated.
 * @returns a function that pauses after WrongExpectedRevision, each time for longer, and throws any other error.
 * @throws StoreBusy when the conflicts go on for too long: nothing was written
 */
export function conflictRetries(): (error: unknown) => Promise<void> {
  const began = performance.now();
  let conflicts = 0;
  return async (error) => {
    if (!(error instanceof WrongExpectedRevision)) throw error;
    conflicts += 1;
    if (conflicts >= MAX_CONFLICTS && performance.now() - began >= MAX_RETRY_MS) {
      throw new StoreBusy(`refused ${conflicts} times in a row: ${error.message}`, { cause: error });
    }
    await pause(backoffMs(conflicts, DELAY));
  };
}

/** The caller and time of a command, recorded in each of its events. */
export interface CommandContext {
  readonly correlationId: string;
  readonly causationId: string;
  /** Milliseconds, from the injected clock. */
  readonly at: number;
  /** The port hides the events from this instant on (ISO 8601). */
  readonly expiresAt?: string;
  readonly partnerId?: string;
  readonly keyId?: string;
  readonly userId?: string;
  /** Trace parent of the events. Default: the span around `toNewEvents`. */
  readonly traceparent?: string;
}

/** Makes the context of work that no request and no event caused. */
export function ownContext(clock: Clock, partnerId?: string): CommandContext {
  const id = newId();
  return {
    correlationId: id,
    causationId: id,
    at: clock.now(),
    ...(partnerId === undefined ? {} : { partnerId }),
  };
}

export interface DomainEvent {
  readonly type: string;
  readonly data: object;
}

/** A kind of stream that handles commands. */
export interface Aggregate<State, Command, Event extends DomainEvent, Refusal extends string> {
  readonly schemas: EventSchemas;
  readonly decider: Decider<State, Command, Event, Refusal>;
}

export interface Loaded<State> {
  readonly state: State;
  /** null: the stream does not exist. */
  readonly revision: Revision | null;
}

export interface Handled<State, Event> {
  readonly state: State;
  readonly events: readonly Event[];
  readonly revision: Revision | null;
  /** Position of the append; null if nothing was appended or the position is unknown. */
  readonly position: Position | null;
}

const RESENDS = 2;

/** Folds one more event of the stream. */
export function evolveStored<State, Command, Event extends DomainEvent, Refusal extends string>(
  { schemas, decider }: Aggregate<State, Command, Event, Refusal>,
  { state }: Loaded<State>,
  stored: RecordedEvent,
): Loaded<State> {
  const event = readEvent(schemas, stored) as Event | null;
  return { state: event ? decider.evolve(state, event) : state, revision: stored.revision };
}

/** Folds a stream, or its events after `known`. `includeExpired`: as in the port. */
export async function load<State, Command, Event extends DomainEvent, Refusal extends string>(
  store: EventStore,
  aggregate: Aggregate<State, Command, Event, Refusal>,
  stream: string,
  known: Loaded<State> = { state: aggregate.decider.initial, revision: null },
  options: Pick<ReadOptions, 'includeExpired' | 'onExpired'> = {},
): Promise<Loaded<State>> {
  let loaded = known;
  const from = known.revision === null ? 0 : known.revision + 1;
  for await (const stored of store.readStream(stream, { ...options, from })) {
    loaded = evolveStored(aggregate, loaded, stored);
  }
  return loaded;
}

/**
 * Loads the stream, decides and appends at the revision read. After a conflict it decides again on the newer state.
 * `known`: the state that the caller has just loaded.
 * @throws OutcomeUnknown when the append may have happened, and the port's other errors when it did not; StoreBusy
 *   after too many conflicts
 */
export const handle = <State, Command, Event extends DomainEvent, Refusal extends string>(
  store: EventStore,
  aggregate: Aggregate<State, Command, Event, Refusal>,
  stream: string,
  command: Command,
  context: CommandContext,
  known?: Loaded<State>,
): Promise<Result<Handled<State, Event>, Refusal>> =>
  inSpan(spanOfCommand(stream, command), async () => {
    let loaded = known ?? (await load(store, aggregate, stream));
    const afterConflict = conflictRetries();
    for (;;) {
      const decision = aggregate.decider.decide(command, loaded.state);
      if (!decision.ok) return decision;
      if (decision.value.length === 0) return accept({ ...loaded, events: [], position: null });
      try {
        const expected = loaded.revision ?? 'no_stream';
        const { revision, position } = await appendSafely(
          store,
          stream,
          expected,
          toNewEvents(aggregate.schemas, decision.value, context),
        );
        const state = decision.value.reduce(aggregate.decider.evolve, loaded.state);
        return accept({ state, events: decision.value, revision, position });
      } catch (error) {
        await afterConflict(error);
        loaded = await load(store, aggregate, stream, loaded);
      }
    }
  });

/** Names the span by the command and the kind of stream, without the command's data. */
export const spanOfCommand = (stream: string, command: unknown) => (): SpanOf => {
  const verb = String((command as { type?: unknown }).type);
  const kind = stream.slice(0, stream.indexOf('-'));
  return { name: `${verb} ${kind}`, attributes: { 'doorplate.command': verb, 'doorplate.context': kind } };
};

/** Appends, and resends after an unknown outcome while `isWanted`: the fixed event ids make the resend idempotent. */
export async function appendSafely(
  store: EventStore,
  stream: string,
  expected: ExpectedRevision,
  events: readonly NewEvent[],
  isWanted: () => boolean = () => true,
): Promise<Appended> {
  let doubt: OutcomeUnknown | null = null;
  for (let resend = 0; ; resend += 1) {
    try {
      return await store.append(stream, expected, events);
    } catch (error) {
      if (error instanceof OutcomeUnknown) doubt = error;
      // A resend that the store rejects as busy says nothing about the first attempt.
      else if (doubt && (error instanceof StoreBusy || error instanceof StoreUnavailable)) throw doubt;
      else throw error;
      if (resend === RESENDS || !isWanted()) throw doubt;
    }
  }
}

/**
 * Makes storable events from domain events.
 * @throws ZodError for data that does not match its schema, because readers could not parse it
 */
export function toNewEvents(
  schemas: EventSchemas,
  events: readonly DomainEvent[],
  context: CommandContext,
): NewEvent[] {
  const span = context.traceparent ?? traceparent();
  const metadata: EventMetadata = {
    $correlationId: context.correlationId,
    $causationId: context.causationId,
    at: iso(context.at),
    ...(context.expiresAt === undefined ? {} : { expires_at: context.expiresAt }),
    ...(context.partnerId === undefined ? {} : { partner_id: context.partnerId }),
    ...(context.keyId === undefined ? {} : { key_id: context.keyId }),
    ...(context.userId === undefined ? {} : { user_id: context.userId }),
    ...(span === undefined ? {} : { traceparent: span }),
  };
  return events.map(({ type, data }) => {
    schemas[type]?.parse(data);
    return { id: newId(), type, data, metadata };
  });
}

/** Wraps a decider to report each decision on state that a fast clock has left behind. */
export const reportingAhead = <State, Command, Event, Refusal extends string>(
  decider: Decider<State, Command, Event, Refusal>,
  mark: FutureTimeMark,
  isAhead: (state: State, command: Command) => boolean,
): Decider<State, Command, Event, Refusal> => ({
  ...decider,
  decide: (command, state) => {
    if (isAhead(state, command)) reportFutureTime(mark);
    return decider.decide(command, state);
  },
});
