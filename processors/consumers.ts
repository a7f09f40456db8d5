import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import { createWakeup } from '../platform/wakeup.ts';

/** Who reads events, by the names that run now: a retired one has no say any more. */
export interface Consumers {
  readonly projections: readonly string[];
  readonly processors: readonly string[];
}

const POLL_MS = 200;
const PATIENCE_MS = 5_000;
const BEFORE_FIRST = -1n;

/** How far all of them are, and so what of the log nobody needs any more (architecture, rule 9). */
export const createPassage = (pool: pg.Pool, { projections, processors }: Consumers) => {
  const loadPositions = async (): Promise<{ readonly name: string; readonly position: bigint }[]> => {
    const { rows } = await pool.query<{ name: string; position: string | null }>({
      name: 'places_of_consumers',
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

  /** What all have passed; null: one of them has passed nothing. */
  const passed = async (): Promise<Position | null> => {
    const least = (await loadPositions()).reduce<bigint | null>(
      (so, { position }) => (so === null || position < so ? position : so),
      null,
    );
    return least === null || least === BEFORE_FIRST ? null : (least as Position);
  };

  return {
    passed,
    /** Who has not come to a place. */
    before: async (target: bigint): Promise<string[]> =>
      (await loadPositions()).filter(({ position }) => position < target).map(({ name }) => name),
    /** Waits for all to come to a place; false where they do not soon. */
    come: async (target: Position | null, signal: AbortSignal): Promise<boolean> => {
      const deadline = performance.now() + PATIENCE_MS;
      const wakeup = createWakeup();
      for (;;) {
        if (target === null || ((await passed()) ?? BEFORE_FIRST) >= target) return true;
        if (signal.aborted || performance.now() > deadline) return false;
        await wakeup.wait(POLL_MS, signal);
      }
    },
  };
};
export type Passage = ReturnType<typeof createPassage>;
