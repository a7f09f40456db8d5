import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import { createAlarm } from '../platform/alarm.ts';

/** Who reads events, by the names that run now: a retired one has no say any more. */
export interface Consumers {
  readonly projections: readonly string[];
  readonly processors: readonly string[];
}

const POLL_MS = 200;
const PATIENCE_MS = 5_000;
const NOWHERE = -1n;

/** How far all of them are, and so what of the log nobody needs any more (architecture, rule 9). */
export const createPassage = (pool: pg.Pool, { projections, processors }: Consumers) => {
  const places = async (): Promise<{ readonly name: string; readonly position: bigint }[]> => {
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
      position: position === null ? NOWHERE : BigInt(position),
    }));
  };

  /** What all have passed; null: one of them has passed nothing. */
  const passed = async (): Promise<Position | null> => {
    const least = (await places()).reduce<bigint | null>(
      (so, { position }) => (so === null || position < so ? position : so),
      null,
    );
    return least === null || least === NOWHERE ? null : (least as Position);
  };

  return {
    passed,
    /** Who has not come to a place. */
    before: async (place: bigint): Promise<string[]> =>
      (await places()).filter(({ position }) => position < place).map(({ name }) => name),
    /** Waits for all to come to a place; false where they do not soon. */
    come: async (place: Position | null, signal: AbortSignal): Promise<boolean> => {
      const deadline = performance.now() + PATIENCE_MS;
      const alarm = createAlarm();
      for (;;) {
        if (place === null || ((await passed()) ?? NOWHERE) >= place) return true;
        if (signal.aborted || performance.now() > deadline) return false;
        await alarm.wait(POLL_MS, signal);
      }
    },
  };
};
export type Passage = ReturnType<typeof createPassage>;
