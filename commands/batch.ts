import { accept, type Result } from '../domain/kernel/decider.ts';
import { MAX_APPEND_BYTES, type NewEvent, type Position } from '../event-store/port.ts';
import { type Aggregate, type CommandContext, toNewEvents } from './handle.ts';

export interface Batched<T> {
  readonly value: T;
  /** The position of the command's events; null where it had none, or the position is not known. */
  readonly position: Position | null;
  /** Whether the command changed anything. */
  readonly changed: boolean;
}

/** A command that waits for its stream. */
export interface Waiting<State, Command, R extends string> {
  readonly command: Command;
  readonly context: CommandContext;
  readonly read: (state: State) => unknown;
  resolve(result: Result<Batched<unknown>, R>): void;
  reject(reason: unknown): void;
}

/** What some commands come to, one after the other. */
export interface Batch<State> {
  readonly events: readonly NewEvent[];
  /** After all of them. */
  readonly state: State;
  /** How many commands are in it. */
  readonly commands: number;
  /** Tells each command what it came to. */
  settle(position: Position | null): void;
}

const MOST_COMMANDS = 256;
/** Of one append. A single command may need more: the store then refuses it alone. */
const MOST_BYTES = MAX_APPEND_BYTES - 65_536;

/**
 * Decides commands in their order, as many as one append can hold. A command that throws is rejected alone, and the
 * others go on without it.
 */
export const decideBatch = <State, Command, Event extends { type: string; data: object }, R extends string>(
  { schemas, decider }: Aggregate<State, Command, Event, R>,
  waiting: readonly Waiting<State, Command, R>[],
  from: State,
): Batch<State> => {
  const events: NewEvent[] = [];
  const settlements: ((position: Position | null) => void)[] = [];
  let state = from;
  let bytes = 0;
  for (const { command, context, read, resolve, reject } of waiting.slice(0, MOST_COMMANDS)) {
    try {
      const decision = decider.decide(command, state);
      const made = decision.ok ? toNewEvents(schemas, decision.value, context) : [];
      const size = made.reduce((sum, event) => sum + bytesOf(event), 0);
      if (settlements.length > 0 && bytes + size > MOST_BYTES) break;
      if (!decision.ok) {
        settlements.push(() => resolve(decision));
        continue;
      }
      const after = decision.value.reduce(decider.evolve, state);
      const value = read(after);
      const changed = made.length > 0;
      settlements.push((position) => resolve(accept({ value, changed, position })));
      events.push(...made);
      bytes += size;
      state = after;
    } catch (error) {
      settlements.push(() => reject(error));
    }
  }
  return {
    events,
    state,
    commands: settlements.length,
    settle: (position) => {
      for (const settle of settlements) settle(position);
    },
  };
};

/** As the stores measure it. */
const bytesOf = ({ data, metadata }: NewEvent): number =>
  Buffer.byteLength(JSON.stringify(data)) + Buffer.byteLength(JSON.stringify(metadata));
