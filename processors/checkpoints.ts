import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import type { Lease } from '../platform/leases.ts';

/** The checkpoints of all processors of a process: saved together, and only when there is something to save. */
export interface ProcessorCheckpoints {
  load(name: string): Promise<{ readonly position: Position | null; readonly stoppedBy: string | null }>;
  /** A processor has passed a position. `handled`: it has handled events on the way. */
  passed(name: string, position: Position, lease: Lease, handled: boolean): void;
  markStopped(name: string, stoppedBy: string | null): Promise<void>;
  /** Saves what is waiting. */
  flush(): Promise<void>;
}

interface Passed {
  readonly position: Position;
  readonly lease: Lease;
}

/** What a crash makes a processor handle again is bounded by the first. */
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
      // At rest no later event would save them, and other processes wait for what the table says.
      for (const [name, passed] of batch) if (!waiting.has(name)) waiting.set(name, passed);
      flushIn(SAVE_MS.passed);
      throw error;
    }
  };

  const flushIn = (ms: number): void => {
    if (performance.now() + ms >= dueAt) return;
    dueAt = performance.now() + ms;
    if (timer) clearTimeout(timer);
    // A position that is not saved is passed again after a crash.
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

/** Never back, and not without the lease: by now another process may lead, and be further on. */
const SAVE = `
  update work.processor p set position = s.position
  from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) as s (name, position, lease, number, holder)
  join work.lease l on l.name = s.lease and l.number = s.number and l.process_id = s.holder
  where p.name = s.name and (p.position is null or p.position < s.position)`;
