import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import type { Lease } from '../platform/leases/leases.ts';

/** The checkpoints of all processors of a process, saved together in one debounced statement. */
export interface ProcessorCheckpoints {
  load(name: string): Promise<{ readonly position: Position | null; readonly stoppedBy: string | null }>;
  /** Schedules the save of a position. `handled`: the processor handled events on the way. */
  passed(name: string, position: Position, lease: Lease, handled: boolean): void;
  markStopped(name: string, stoppedBy: string | null): Promise<void>;
  flush(): Promise<void>;
}

interface Passed {
  readonly position: Position;
  readonly lease: Lease;
}

/** `handled` bounds how many events are handled again after a crash. */
const SAVE_MS = { handled: 500, passed: 1_000 } as const;

export const createProcessorCheckpoints = (pool: pg.Pool): ProcessorCheckpoints => {
  const waiting = new Map<string, Passed>();
  let timer: NodeJS.Timeout | null = null;
  let dueAt = Number.POSITIVE_INFINITY;

  const flush = async (): Promise<void> => {
    if (timer) clearTimeout(timer);
    timer = null;
    dueAt = Number.POSITIVE_INFINITY;
    const batch = [...waiting];
    waiting.clear();
    if (batch.length === 0) return;
    try {
      await pool.query({ name: 'save_processor_checkpoints', text: SAVE, values: valuesOf(batch) });
    } catch (error) {
      // An idle processor schedules no further save, and other processes wait for the saved position.
      for (const [name, passed] of batch) if (!waiting.has(name)) waiting.set(name, passed);
      flushIn(SAVE_MS.passed);
      throw error;
    }
  };

  const flushIn = (ms: number): void => {
    if (performance.now() + ms >= dueAt) return;
    dueAt = performance.now() + ms;
    if (timer) clearTimeout(timer);
    // A failed save is retried by `flush`; a crash before it only repeats idempotent work.
    timer = setTimeout(() => void flush().catch(() => undefined), ms).unref();
  };

  return {
    load: async (name) => {
      await pool.query('insert into work.processor (name) values ($1) on conflict (name) do nothing', [name]);
      const { rows } = await pool.query('select position, stopped_by from work.processor where name = $1', [
        name,
      ]);
      const { position, stopped_by } = rows[0];
      return { position: position === null ? null : (BigInt(position) as Position), stoppedBy: stopped_by };
    },
    passed: (name, position, lease, handled) => {
      waiting.set(name, { position, lease });
      flushIn(handled ? SAVE_MS.handled : SAVE_MS.passed);
    },
    markStopped: async (name, stoppedBy) => {
      await pool.query('update work.processor set stopped_by = $2 where name = $1', [name, stoppedBy]);
    },
    flush,
  };
};

const valuesOf = (batch: readonly (readonly [string, Passed])[]): unknown[] => [
  batch.map(([name]) => name),
  batch.map(([, { position }]) => position),
  batch.map(([, { lease }]) => lease.name),
  batch.map(([, { lease }]) => lease.number),
  batch.map(([, { lease }]) => lease.processId),
];

/** Requires the lease and never moves back: another process may have taken the lease and advanced further. */
const SAVE = `
  update work.processor p set position = s.position
  from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) as s (name, position, lease, number, holder)
  join work.lease l on l.name = s.lease and l.number = s.number and l.process_id = s.holder
  where p.name = s.name and (p.position is null or p.position < s.position)`;
