import type { Position } from '../event-store/port.ts';

/** Progress of read models or processors. */
export interface Reached {
  /** Waits until all named ones reach the position; false after the time limit. */
  reached(names: readonly string[], position: Position | null, timeoutMs: number): Promise<boolean>;
}
