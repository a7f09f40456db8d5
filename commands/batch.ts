import { accept, type Result } from '../domain/kernel/decider.ts';
import { MAX_APPEND_BYTES, type NewEvent, type Position } from '../event-store/port.ts';
import { type Aggregate, type CommandContext, toNewEvents } from './handle.ts';

export interface Batched<T> {
  readonly value: T;
  /** Position of the command's events; null if it made none or the position is unknown. */
  readonly position: Position | null;
  readonly changed: boolean;
}

export interface Waiting<State, Command, R extends string> {
  readonly command: Command;
  readonly context: CommandContext;
  readonly read: (state: State) => unknown;
  resolve(result: Result<Batched<unknown>, R>): void;
  reject(reason: unknown): void;
}

export interface Batch<State> {
  readonly events: readonly NewEvent[];
  readonly state: State;
  readonly commands: number;
  settle(position: Position | null): void;
}

const MAX_COMMANDS = 256;
/** Limit of one append. A single command may exceed it; the store then rejects that command alone. */
const MAX_BATCH_BYTES = MAX_APPEND_BYTES - 65_536;

/** Decides commands in order, as many as fit into one append. A command that throws is rejected alone. */
export const decideBatch = <State, Command, Event extends { type: string; data: object }, R extends string>(
  { schemas, decider }: Aggregate<State, Command, Event, R>,
  waiting: readonly Waiting<State, Command, R>[],
  from: State,
): Batch<State> => {
  const events: NewEvent[] = [];
  const settlements: ((position: Position | null) => void)[] = [];
  let state = from;
  let bytes = 0;
  for (const { command, context, read, resolve, reject } of waiting.slice(0, MAX_COMMANDS)) {
    try {
      const decision = decider.decide(command, state);
      const made = decision.ok ? toNewEvents(schemas, decision.value, context) : [];
      const size = made.reduce((sum, event) => sum + bytesOf(event), 0);
      if (settlements.length > 0 && bytes + size > MAX_BATCH_BYTES) break;
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

/** Measures bytes as the stores do. */
const bytesOf = ({ data, metadata }: NewEvent): number =>
  Buffer.byteLength(JSON.stringify(data)) + Buffer.byteLength(JSON.stringify(metadata));
