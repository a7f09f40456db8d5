import pg from 'pg';
import type { Batch, FollowOptions, Position } from '../port.ts';
import { COLUMNS, isHidden, toRecordedEvent } from './rows.ts';

const CHANNEL = 'doorplate_events';
/** The safety net under a lost notification. */
const POLL_MS = 300;
const RETRY_MS = 250;

interface FollowerOptions {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly now: () => number;
}

export interface Follower {
  follow(options: FollowOptions): AsyncGenerator<Batch>;
  /** Wakes the followers of this process at once and those of the others by a notification. */
  committed(position: Position): void;
  close(): Promise<void>;
}

/**
 * Follows the log by position. Commits are serialised by the writers' lock, so what is visible below the
 * highest visible position is complete and a cursor that holds one number misses nothing.
 */
export const createFollower = ({ url, pool, now }: FollowerOptions): Follower => {
  const waiting = new Set<() => void>();
  const closing = new AbortController();
  let listener: pg.Client | null = null;
  let notifying = false;
  let notifyAgain = false;
  /** Counts commits heard of, so that one that comes during a read is not slept over. */
  let heard = 0;

  const wake = (): void => {
    heard += 1;
    for (const resume of waiting) resume();
  };

  const notify = (): void => {
    if (notifying) {
      notifyAgain = true;
      return;
    }
    notifying = true;
    pool
      .query(`notify ${CHANNEL}`)
      .catch(() => undefined)
      .finally(() => {
        notifying = false;
        if (notifyAgain && !closing.signal.aborted) {
          notifyAgain = false;
          notify();
        }
      });
  };

  const listen = async (): Promise<void> => {
    if (listener || closing.signal.aborted) return;
    const client = new pg.Client({ connectionString: url, application_name: 'doorplate listen' });
    listener = client;
    const lost = (): void => {
      if (listener === client) listener = null;
      void client.end().catch(() => undefined);
    };
    client.on('error', lost);
    client.on('end', lost);
    client.on('notification', wake);
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
    } catch {
      lost();
    }
  };

  const pause = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      waiting.add(done);
      signal.addEventListener('abort', done);
    });

  const readAfter = async (after: Position | null, size: number): Promise<pg.QueryResultRow[] | null> => {
    try {
      const { rows } = await pool.query({
        name: 'follow',
        text: `select ${COLUMNS} from eventlog.event e where e.position > $1 order by e.position limit $2`,
        values: [after ?? -1n, size],
      });
      return rows;
    } catch {
      return null;
    }
  };

  async function* follow(options: FollowOptions): AsyncGenerator<Batch> {
    const signal = AbortSignal.any([options.signal, closing.signal]);
    const size = options.batchSize ?? 500;
    const wanted = (stream: string): boolean =>
      options.prefixes === undefined || options.prefixes.some((prefix) => stream.startsWith(prefix));
    let after = options.after;
    while (!signal.aborted) {
      const before = heard;
      const rows = await readAfter(after, size);
      if (signal.aborted) return;
      const last = rows?.at(-1);
      if (rows && last) {
        after = BigInt(last.position) as Position;
        const instant = now();
        const events = rows
          .filter((row) => wanted(row.stream))
          .map(toRecordedEvent)
          .filter((event) => !isHidden(event, instant));
        yield { events, position: after };
        continue;
      }
      void listen();
      if (rows === null) await pause(RETRY_MS, signal);
      else if (heard === before) await pause(POLL_MS, signal);
    }
  }

  return {
    follow,
    committed: () => {
      wake();
      notify();
    },
    close: async () => {
      closing.abort();
      wake();
      await listener?.end().catch(() => undefined);
    },
  };
};
