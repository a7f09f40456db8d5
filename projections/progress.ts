import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import { createListener } from '../platform/listener.ts';
import { shareNext } from '../platform/share-next.ts';

/**
 * Notified in each projecting transaction with `{ name: position }`. Any database user may notify, so listeners read positions
 * that are new to them from the table.
 */
export const PROJECTED_CHANNEL = 'doorplate_projected';
/** Notified by a process that waits for a leader in another process. */
const WANTED_CHANNEL = 'doorplate_wanted';
/** Catches lost notifications while a caller waits. */
const POLL_MS = 150;

interface Waiter {
  readonly names: readonly string[];
  readonly position: Position;
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
  /** Asks the named consumers, in whichever process, to apply waiting events at once. */
  hurry(names: readonly string[]): void;
  /**
   * Subscribes to requests to hurry. `names`: consumers that run in this process; other processes are notified only for
   * names that no subscription covers. Returns the unsubscribe function.
   */
  onWanted(names: readonly string[], listener: () => void): () => void;
  close(): Promise<void>;
}

/** Creates the tracker of progress. `table` holds (name, position): read models or processors. */
export const createProgress = ({
  url,
  pool,
  table = 'read.projection',
}: {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly table?: 'read.projection' | 'work.processor';
}): Progress => {
  const applied = new Map<string, Position>();
  const waiters = new Set<Waiter>();
  const hurried = new Map<() => void, readonly string[]>();
  let polling: NodeJS.Timeout | null = null;
  /** Whether a notification named a position that this process does not know yet. */
  let isStale = false;
  let closed = false;
  let lost = 0;

  const isReached = ({ names, position }: Waiter): boolean =>
    names.every((name) => (applied.get(name) ?? -1n) >= position);

  const advance = (positions: Readonly<Record<string, Position>>): void => {
    for (const [name, position] of Object.entries(positions)) {
      if ((applied.get(name) ?? -1n) < position) applied.set(name, position);
    }
    for (const waiter of waiters) if (isReached(waiter)) waiter.resolve(true);
  };

  const hurryOthers = shareNext(() => pool.query(`notify ${WANTED_CHANNEL}`));

  const hurry = (names: readonly string[]): void => {
    for (const call of hurried.keys()) call();
    const here = new Set([...hurried.values()].flat());
    if (names.some((name) => !here.has(name))) hurryOthers().catch(() => undefined);
  };

  const listener = createListener({
    url,
    name: 'doorplate progress',
    channels: [PROJECTED_CHANNEL, WANTED_CHANNEL],
    onNotification: (channel, payload) => {
      if (channel === PROJECTED_CHANNEL) onProjected(positionsIn(payload));
      else for (const call of hurried.keys()) call();
    },
    // A crash of the server may lose the last rows together with their checkpoints.
    lost: () => {
      lost += 1;
      applied.clear();
    },
  });

  const load = shareNext(async (): Promise<void> => {
    isStale = false;
    const before = lost;
    const { rows } = await pool.query(`select name, position from ${table} where position is not null`);
    if (before === lost)
      advance(Object.fromEntries(rows.map((row) => [row.name, BigInt(row.position) as Position])));
  });

  // Callers keep waiting for the database until their time limits.
  const loadNow = (): void => void load().catch(() => undefined);

  const onProjected = (positions: Readonly<Record<string, Position>>): void => {
    const isNew = Object.entries(positions).some(([name, position]) => (applied.get(name) ?? -1n) < position);
    if (!isNew) return;
    isStale = true;
    if (waiters.size > 0) loadNow();
  };

  const poll = async (): Promise<void> => {
    listener.ensure();
    await load().catch(() => undefined);
    polling = waiters.size > 0 && !closed ? setTimeout(poll, POLL_MS) : null;
  };

  return {
    hurry,
    advance: (positions) => {
      if (listener.isListening()) advance(positions);
      else listener.ensure();
    },
    onWanted: (names, call) => {
      hurried.set(call, names);
      listener.ensure();
      return () => hurried.delete(call);
    },
    reached: (names, position, timeoutMs, manner) => {
      if (position === null) return Promise.resolve(true);
      return new Promise((resolve) => {
        const waiter: Waiter = {
          names,
          position,
          resolve: (reached) => {
            clearTimeout(timer);
            waiters.delete(waiter);
            resolve(reached);
          },
        };
        const timer = setTimeout(() => waiter.resolve(false), timeoutMs);
        waiters.add(waiter);
        if (isReached(waiter)) waiter.resolve(true);
        else {
          listener.ensure();
          if (manner !== 'patient') hurry(names);
          polling ??= setTimeout(poll, POLL_MS);
          if (isStale) loadNow();
        }
      });
    },
    close: async () => {
      closed = true;
      if (polling) clearTimeout(polling);
      for (const waiter of waiters) waiter.resolve(false);
      await listener.close();
    },
  };
};

const positionsIn = (payload: string): Record<string, Position> =>
  Object.fromEntries(
    Object.entries(JSON.parse(payload) as Record<string, string>).map(([name, at]) => [
      name,
      BigInt(at) as Position,
    ]),
  );
