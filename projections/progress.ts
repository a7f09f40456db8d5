import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import { coalesceNext } from '../platform/limits/coalesce.ts';
import { Listener, notify } from '../platform/postgres/notifications.ts';

/** The positions of consumers that a process knows: those that it has seen in the table or reported itself, and hints. */
class KnownPositions {
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
const positionsIn = (payload: string): Record<string, Position> =>
  Object.fromEntries(
    Object.entries(JSON.parse(payload) as Record<string, string>).map(([name, at]) => [
      name,
      BigInt(at) as Position,
    ]),
  );

/**
 * Notified by each projecting transaction with `{ name: position }`. Listeners read positions that are new to them from the table.
 */
export const PROJECTED_CHANNEL = 'doorplate_projected';
/**
 * Notified by a process that waits for a leader in another process, with the names of the consumers, separated by commas, and the
 * position that it waits for, if it is known, as `@position`.
 */
const WANTED_CHANNEL = 'doorplate_wanted';
/** Catches lost notifications while a caller waits. */
const POLL_MS = 150;

interface Waiter {
  readonly names: readonly string[];
  readonly position: Position;
  readonly isPatient: boolean;
  resolve(reached: boolean): void;
}

/** The progress of consumers as this process knows it, for read-your-writes. */
export interface Progress {
  /** Reports commits of this process directly. Ignored while not listening, because a crash of the server would go unnoticed. */
  advance(positions: Readonly<Record<string, Position>>): void;
  /**
   * Waits until all named consumers reach the position; false after `timeoutMs`. It also asks them to hurry, unless `manner`
   * is `patient`.
   */
  reached(
    names: readonly string[],
    position: Position | null,
    timeoutMs: number,
    manner?: 'patient',
  ): Promise<boolean>;
  /** Asks the named consumers, in whichever process, to apply events up to `to` at once; no names: all of this process. */
  hurry(names: readonly string[], to?: Position | null): void;
  /**
   * Subscribes to requests to hurry. `names`: consumers that run in this process; other processes are notified only for
   * names that no subscription covers. Returns the unsubscribe function.
   */
  onWanted(names: readonly string[], listener: WantedListener): () => void;
  close(): Promise<void>;
}

/** `to`: the position that is waited for; null: not known. */
type WantedListener = (to: Position | null) => void;

interface ProgressOptions {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Holds (name, position): read models, which is the default, or processors. */
  readonly table?: 'read.projection' | 'work.processor';
}

/** Creates the tracker of the progress of consumers. */
export const createProgress = (options: ProgressOptions): Progress => new ConsumerProgress(options);

class ConsumerProgress implements Progress {
  readonly #options: ProgressOptions;
  readonly #listener: Listener;
  readonly #known = new KnownPositions();
  readonly #waiters = new Set<Waiter>();
  readonly #hurried = new Map<WantedListener, readonly string[]>();
  readonly #load = coalesceNext(() => this.#loadNow());
  #polling: NodeJS.Timeout | null = null;
  #isClosed = false;
  /** How often the connection was lost. */
  #losses = 0;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#listener = new Listener({
      url: options.url,
      channels: [PROJECTED_CHANNEL, WANTED_CHANNEL],
      onNotification: (channel, payload) => {
        if (channel === PROJECTED_CHANNEL) this.#onProjected(positionsIn(payload));
        else this.#onWanted(payload.split(','));
      },
      lost: () => this.#onLost(),
    });
  }

  advance(positions: Readonly<Record<string, Position>>): void {
    if (this.#listener.isListening()) this.#advance(positions);
    else this.#listener.ensure();
  }

  reached(
    names: readonly string[],
    position: Position | null,
    timeoutMs: number,
    manner?: 'patient',
  ): Promise<boolean> {
    if (position === null) return Promise.resolve(true);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        names,
        position,
        isPatient: manner === 'patient',
        resolve: (reached) => {
          clearTimeout(timer);
          this.#waiters.delete(waiter);
          resolve(reached);
        },
      };
      const timer = setTimeout(() => waiter.resolve(false), timeoutMs);
      this.#waiters.add(waiter);
      if (this.#known.areAt(names, position)) return waiter.resolve(true);
      this.#listener.ensure();
      if (!waiter.isPatient) this.hurry(names, position);
      this.#polling ??= setTimeout(() => this.#poll(), POLL_MS);
      if (this.#known.isEmpty() || this.#known.mayBeAt(names, position)) this.#reload();
    });
  }

  hurry(names: readonly string[], to: Position | null = null): void {
    this.#hurryHere(names, to);
    const here = new Set([...this.#hurried.values()].flat());
    if (names.every((name) => here.has(name))) return;
    const wanted = to === null ? names : [...names, `@${to}`];
    void notify(this.#options.pool, WANTED_CHANNEL, wanted.join(',')).catch(() => undefined);
  }

  onWanted(names: readonly string[], listener: WantedListener): () => void {
    this.#hurried.set(listener, names);
    this.#listener.ensure();
    return () => this.#hurried.delete(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#polling) clearTimeout(this.#polling);
    for (const waiter of this.#waiters) waiter.resolve(false);
    await this.#listener.close();
  }

  #onWanted(wanted: readonly string[]): void {
    const to = wanted.find((one) => one.startsWith('@'))?.slice(1);
    this.#hurryHere(wanted, to === undefined ? null : (BigInt(to) as Position));
  }

  #hurryHere(names: readonly string[], to: Position | null): void {
    for (const [call, covered] of this.#hurried)
      if (names.length === 0 || covered.some((name) => names.includes(name))) call(to);
  }

  #advance(positions: Readonly<Record<string, Position>>): void {
    this.#known.advance(positions);
    for (const waiter of this.#waiters) {
      if (this.#known.areAt(waiter.names, waiter.position)) waiter.resolve(true);
    }
  }

  #onProjected(positions: Readonly<Record<string, Position>>): void {
    this.#known.hint(positions);
    const isWanted = [...this.#waiters].some(({ names, position }) => this.#known.mayBeAt(names, position));
    if (isWanted) this.#reload();
  }

  /** Forgets all positions, because a crash of the server may lose the last rows together with their checkpoints. */
  #onLost(): void {
    this.#losses += 1;
    this.#known.forget();
  }

  async #loadNow(): Promise<void> {
    this.#known.forgetHints();
    const { pool, table = 'read.projection' } = this.#options;
    const before = this.#losses;
    const { rows } = await pool.query(`select name, position from ${table} where position is not null`);
    if (before !== this.#losses) return;
    this.#advance(Object.fromEntries(rows.map((row) => [row.name, BigInt(row.position) as Position])));
  }

  // Callers keep waiting for the database until their time limits.
  #reload(): void {
    this.#load().catch(() => undefined);
  }

  async #poll(): Promise<void> {
    this.#listener.ensure();
    await this.#load().catch(() => undefined);
    const impatient = [...this.#waiters].filter(({ isPatient }) => !isPatient);
    // Events that were read too late for the first call may be gathered again.
    if (impatient.length > 0) this.hurry([...new Set(impatient.flatMap(({ names }) => names))]);
    const isNeeded = this.#waiters.size > 0 && !this.#isClosed;
    this.#polling = isNeeded ? setTimeout(() => this.#poll(), POLL_MS) : null;
  }
}
