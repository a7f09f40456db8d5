import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type Alarm, createAlarm } from '../../platform/alarm.ts';
import { createListener } from '../../platform/listener.ts';
import { isHidden } from '../hidden.ts';
import type { Batch, FollowOptions, Position } from '../port.ts';
import { COLUMNS, toRecordedEvent } from './rows.ts';

const CHANNEL = 'doorplate_events';
/** The safety net under a lost notification. */
const POLL_MS = 300;
const RETRY_MS = 250;
/** Other processes hear of commits at once, and then at most this often. */
const NOTIFY_MS = 20;
/** How many positions a filtered read passes at once. */
const SPAN = 5_000;

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
  const following = new Set<Alarm>();
  const closing = new AbortController();
  const own = randomUUID();
  const NOTIFY = `select pg_notify('${CHANNEL}', '${own}')`;
  let notifying: NodeJS.Timeout | null = null;
  let again = false;

  const wake = (): void => {
    for (const alarm of following) alarm.ring();
  };

  const notify = (): void => {
    again = notifying !== null;
    if (again) return;
    pool.query(NOTIFY).catch(() => undefined);
    notifying = setTimeout(() => {
      notifying = null;
      if (again) notify();
    }, NOTIFY_MS);
  };

  const listener = createListener({
    url,
    name: 'doorplate listen',
    channels: [CHANNEL],
    heard: (_channel, payload) => {
      if (payload !== own) wake();
    },
  });

  const read = async (
    after: Position | null,
    size: number,
    prefixes: readonly string[] | undefined,
  ): Promise<pg.QueryResultRow[] | null> => {
    const query = prefixes
      ? { name: 'follow_some', text: SOME, values: [after ?? -1n, size, prefixes] }
      : { name: 'follow_all', text: ALL, values: [after ?? -1n, size] };
    try {
      return (await pool.query(query)).rows;
    } catch {
      return null;
    }
  };

  async function* follow(options: FollowOptions): AsyncGenerator<Batch> {
    const signal = AbortSignal.any([options.signal, closing.signal]);
    const size = options.batchSize ?? 500;
    let after = options.after;
    // A commit that is heard of during a read is not slept over: the alarm remembers.
    const alarm = createAlarm();
    following.add(alarm);
    try {
      while (!signal.aborted) {
        const rows = await read(after, size, options.prefixes);
        if (signal.aborted) return;
        const last = rows?.at(-1);
        if (rows && last) {
          after = BigInt(last.position) as Position;
          const instant = now();
          // The last row of a filtered read may be a place without an event.
          const events = rows
            .filter((row) => row.stream !== null)
            .map(toRecordedEvent)
            .filter((event) => options.includeExpired || !isHidden(event, instant));
          yield { events, position: after };
          continue;
        }
        listener.ensure();
        await alarm.wait(rows === null ? RETRY_MS : POLL_MS, signal);
      }
    } finally {
      following.delete(alarm);
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
      if (notifying) clearTimeout(notifying);
      wake();
      await listener.close();
    },
  };
};

const ALL = `select ${COLUMNS} from eventlog.event e where e.position > $1 order by e.position limit $2`;

/**
 * Events of the streams wanted, then the place up to which there are no more of them: the end of the span, unless
 * the limit cut it short.
 */
const SOME = `
  with span as (
         select position, stream from eventlog.event where position > $1 order by position limit ${SPAN}),
       wanted as (
         select position from span where stream ^@ any ($3::text[]) order by position limit $2),
       upto as (
         select case when (select count(*) from wanted) < $2 then (select max(position) from span)
                     else (select max(position) from wanted) end as position)
  select u.position, e.stream, e.revision, e.id, e.type, e.data, e.metadata
  from (select position from wanted union select position from upto where position is not null) u
  left join eventlog.event e on e.position = u.position and e.position in (select position from wanted)
  order by u.position`;
