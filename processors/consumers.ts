import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import { createWakeup } from '../platform/clock/waiting.ts';
import { CHECKPOINTS_CHANNEL, notifyIfRoom } from '../platform/postgres/notifications.ts';
import { listPositions } from '../queries/consumers.ts';

/** The names of running consumers, of all or of those that follow some events; checkpoints of others are ignored. */
export interface Consumers {
  readonly projections: readonly string[];
  readonly processors: readonly string[];
}

const FIRST_POLL_MS = 25;
const MAX_POLL_MS = 200;
const MAX_WAIT_MS = 5_000;
const BEFORE_FIRST = -1n;
const WANT = `select ${notifyIfRoom(`'${CHECKPOINTS_CHANNEL}'`, "''")}`;

/** Reads the progress of consumers, which decides which events may be deleted (architecture, rule 9). */
export function createConsumerProgress(pool: pg.Pool, consumers: Consumers) {
  /** Returns the position that all consumers have passed, or null if one has not passed any event. */
  const passed = async (): Promise<Position | null> => {
    const positions = (await listPositions(pool, consumers)).map(({ position }) => position ?? BEFORE_FIRST);
    const least = positions.reduce(
      (so, position) => (position < so ? position : so),
      positions[0] ?? BEFORE_FIRST,
    );
    return least === BEFORE_FIRST ? null : (least as Position);
  };

  return {
    passed,
    /** Returns the names of the consumers that are behind a position. */
    before: async (target: bigint): Promise<string[]> =>
      (await listPositions(pool, consumers))
        .filter(({ position }) => (position ?? BEFORE_FIRST) < target)
        .map(({ name }) => name),
    /**
     * Asks all processes to save their checkpoints, and waits until all consumers reach a position; false after 5 seconds or
     * when `signal` aborts.
     */
    waitFor: async (target: Position | null, signal: AbortSignal): Promise<boolean> => {
      const deadline = performance.now() + MAX_WAIT_MS;
      const wakeup = createWakeup();
      for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(2 * pollMs, MAX_POLL_MS)) {
        if (target === null || ((await passed()) ?? BEFORE_FIRST) >= target) return true;
        if (signal.aborted || performance.now() > deadline) return false;
        await pool.query({ name: 'want_checkpoints', text: WANT });
        await wakeup.wait(pollMs, signal);
      }
    },
  };
}
export type ConsumerProgress = ReturnType<typeof createConsumerProgress>;
