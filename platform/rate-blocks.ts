import type pg from 'pg';
import { MAX_AHEAD_MS } from '../domain/kernel/ahead.ts';
import type { Clock } from './clock.ts';

/** A part of a rate that a process wants to spend on its own. */
export interface WantedBlock {
  readonly name: string;
  readonly ceiling: number;
  readonly windowMs: number;
  readonly size: number;
  /** What is left of the block before, and the slot that it counts in. */
  readonly unused: number;
  readonly unusedSlot: string;
}

export interface TakenBlock {
  readonly granted: number;
  readonly granted_slot: string;
  readonly retry_ms: string;
  readonly was_ahead: boolean;
  /** The counts before, by tenths of the window up to `slot`; null: there were none. */
  readonly slot: string | null;
  readonly used: readonly number[] | null;
}

interface Waiting {
  readonly wanted: WantedBlock;
  readonly resolve: (taken: TakenBlock) => void;
  readonly reject: (error: unknown) => void;
}

/** A statement holds the rows of its names, some of which all callers need, until it ends. */
const NAMES_AT_ONCE = 50;
const STATEMENTS_AT_ONCE = 2;
/** Class of errors in a value, which must not fail other callers. */
const DATA_ERROR = /^22/;

/** The subqueries read the row as it was before. */
const TAKE = `
  select granted, granted_slot, retry_ms, was_ahead,
         (select slot from work.rate where name = wanted.name) as slot,
         (select used from work.rate where name = wanted.name) as used
  from unnest($1::text[], $2::integer[], $3::bigint[], $4::integer[], $5::integer[], $6::bigint[])
         with ordinality as wanted (name, ceiling, window_ms, size, unused, unused_slot, nth),
       work.take_rate(wanted.name, wanted.ceiling, wanted.window_ms, wanted.size, $7, wanted.unused, wanted.unused_slot)
  order by nth`;

/** In the order of the statement's parameters. */
const COLUMNS = ['name', 'ceiling', 'windowMs', 'size', 'unused', 'unusedSlot'] as const;

/**
 * Takes blocks of rates from PostgreSQL. Calls that come while others are under way share a statement, because a visitor with
 * many addresses has a rate for each. Processes count by the fastest clock among them: a slot that one process has begun ends
 * for the others a window later by their own clocks, however far these are behind.
 */
export const createRateBlocks = (
  pool: pg.Pool,
  clock: Clock,
): ((wanted: WantedBlock) => Promise<TakenBlock>) => {
  const waiting: Waiting[] = [];
  let running = 0;
  /** How far the clock of another process is ahead, milliseconds. */
  let aheadMs = 0;

  const noteAhead = ({ granted_slot }: TakenBlock, { windowMs }: WantedBlock): void => {
    const ms = Number(granted_slot) * Math.max(1, Math.floor(windowMs / 10)) - clock.now();
    if (ms <= MAX_AHEAD_MS) aheadMs = Math.max(aheadMs, ms);
  };

  const take = async (wanted: readonly WantedBlock[]): Promise<TakenBlock[]> => {
    const { rows } = await pool.query<TakenBlock>({
      name: 'take_rates',
      text: TAKE,
      values: [...COLUMNS.map((key) => wanted.map((one) => one[key])), clock.now() + aheadMs],
    });
    for (const [nth, taken] of rows.entries()) noteAhead(taken, wanted[nth] as WantedBlock);
    return rows;
  };

  const settle = async (some: readonly Waiting[]): Promise<void> => {
    try {
      const taken = await take(some.map(({ wanted }) => wanted));
      for (const [nth, { resolve }] of some.entries()) resolve(taken[nth] as TakenBlock);
    } catch (error) {
      const isOfOne = some.length > 1 && DATA_ERROR.test((error as { code?: string }).code ?? '');
      if (isOfOne) for (const one of some) await settle([one]);
      else for (const { reject } of some) reject(error);
    }
  };

  const run = async (): Promise<void> => {
    running += 1;
    while (waiting.length > 0) {
      // All processes lock rows in the same order.
      await settle(waiting.splice(0, NAMES_AT_ONCE).sort(byName));
    }
    running -= 1;
  };

  return (wanted) =>
    new Promise((resolve, reject) => {
      waiting.push({ wanted, resolve, reject });
      if (running < STATEMENTS_AT_ONCE) void run();
    });
};

const byName = ({ wanted: one }: Waiting, { wanted: other }: Waiting): number =>
  one.name < other.name ? -1 : 1;
