import type { Position } from '../event-store/port.ts';

/** The positions of consumers that a process knows: those that it has seen in the table or reported itself, and hints. */
export class KnownPositions {
  readonly #applied = new Map<string, Position>();
  /** Positions of notifications since the last read of the table, which need not be true. */
  readonly #hinted = new Map<string, Position>();

  isEmpty(): boolean {
    return this.#applied.size === 0;
  }

  areAt(names: readonly string[], position: Position): boolean {
    return names.every((name) => this.#isAt(name, position));
  }

  /** Returns whether the consumers are at the position if the hints are true. */
  mayBeAt(names: readonly string[], position: Position): boolean {
    return names.every((name) => this.#isAt(name, position) || (this.#hinted.get(name) ?? -1n) >= position);
  }

  advance(positions: Readonly<Record<string, Position>>): void {
    for (const [name, position] of Object.entries(positions)) {
      if (!this.#isAt(name, position)) this.#applied.set(name, position);
    }
  }

  hint(positions: Readonly<Record<string, Position>>): void {
    for (const [name, position] of Object.entries(positions)) {
      // Other names could be of anyone's invention, without an end.
      if (this.#applied.has(name) && !this.#isAt(name, position)) this.#hinted.set(name, position);
    }
  }

  forgetHints(): void {
    this.#hinted.clear();
  }

  forget(): void {
    this.#applied.clear();
  }

  #isAt(name: string, position: Position): boolean {
    return (this.#applied.get(name) ?? -1n) >= position;
  }
}

/** Reads the payload of a notification. */
export const positionsIn = (payload: string): Record<string, Position> =>
  Object.fromEntries(
    Object.entries(JSON.parse(payload) as Record<string, string>).map(([name, at]) => [
      name,
      BigInt(at) as Position,
    ]),
  );
