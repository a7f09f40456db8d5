import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import { createWakeup } from '../platform/clock/waiting.ts';
import { CHECKPOINTS_CHANNEL, notifyIfRoom } from '../platform/postgres/notifications.ts';

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
export const createConsumerProgress = (pool: pg.Pool, { projections, processors }: Consumers) => {
  const loadPositions = async (): Promise<{ readonly name: string; readonly position: bigint }[]> => {
    const { rows } = await pool.query<{ name: string; position: string | null }>({
      name: 'consumer_positions',
      text: `select 'projection ' || n.name as name, c.position
             from unnest($1::text[]) as n (name) left join read.projection c on c.name = n.name
             union all
             select 'processor ' || n.name, c.position
             from unnest($2::text[]) as n (name) left join work.processor c on c.name = n.name`,
      values: [projections, processors],
    });
    return rows.map(({ name, position }) => ({
      name,
      position: position === null ? BEFORE_FIRST : BigInt(position),
    }));
  };

  /** Returns the position that all consumers have passed, or null if one has not passed any event. */
  const passed = async (): Promise<Position | null> => {
    const least = (await loadPositions()).reduce<bigint | null>(
      (so, { position }) => (so === null || position < so ? position : so),
      null,
    );
    return least === null || least === BEFORE_FIRST ? null : (least as Position);
  };

  return {
    passed,
    /** Returns the names of the consumers that are behind a position. */
    before: async (target: bigint): Promise<string[]> =>
      (await loadPositions()).filter(({ position }) => position < target).map(({ name }) => name),
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
};
export type ConsumerProgress = ReturnType<typeof createConsumerProgress>;
