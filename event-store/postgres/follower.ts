import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createWakeup, type Wakeup } from '../../platform/clock/waiting.ts';
import { Listener, notify } from '../../platform/postgres/notifications.ts';
import {
  type Batch,
  type FollowOptions,
  isHidden,
  type Position,
  type RecordedEvent,
  type StoreOptions,
} from '../port.ts';
import { COLUMNS, toRecordedEvent } from './read-stream.ts';

const CHANNEL = 'doorplate_events';
/** Catches lost notifications, in less time than callers wait for what they wrote. */
const POLL_MS = 2_000;
const RETRY_MS = 250;
/** Poll interval without a listening connection. */
const UNNOTIFIED_POLL_MS = 300;
/** Limit of one read, in stored bytes. A single event may exceed it. */
const MAX_READ_BYTES = 4 * 1_048_576;
const MIN_READ_BYTES = 65_536;
/** A failed read divides the next size by this; each success doubles it. */
const SHRINK = 4;
const NOTIFY_MS = 20;
/** Number of positions that one filtered read covers. */
const SPAN = 5_000;

interface FollowerOptions extends Required<Omit<StoreOptions, 'deadlineMs'>> {
  readonly pool: pg.Pool;
  readonly hasOtherListeners: () => boolean;
}

/**
 * Followers of the log. The writers' lock serializes commits, so everything below the highest visible position is
 * complete and a single position is a sufficient cursor.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #following = new Set<Wakeup>();
  readonly #closing = new AbortController();
  /** Marks this process's own notifications. */
  readonly #own = randomUUID();
  readonly #listener: Listener;
  #notifying: NodeJS.Timeout | null = null;
  #notifyAgain = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#listener = new Listener({
      url: options.url,
      channels: [CHANNEL],
      onNotification: (_channel, payload) => {
        if (payload !== this.#own) this.#wake();
      },
      // Commits before the connection are not notified again.
      ready: () => this.#wake(),
    });
  }

  async *follow(options: FollowOptions): AsyncGenerator<Batch> {
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    const limit = { events: options.batchSize ?? 500, bytes: MAX_READ_BYTES };
    let size = limit;
    let after = options.after;
    // The wakeup stays set if a commit arrives during a read, so the next wait returns at once.
    const wakeup = createWakeup();
    this.#following.add(wakeup);
    try {
      while (!signal.aborted) {
        const rows = await this.#read(after, size, options.prefixes);
        if (signal.aborted) return;
        const asked = size;
        size = rows === null ? shrunk(size) : grown(size, limit);
        const last = rows?.at(-1);
        if (rows && last) {
          after = BigInt(last.position) as Position;
          yield { events: this.#visible(rows, options), position: after };
          // A filtered read also ends with its span.
          if (options.prefixes || isFull(rows, asked)) continue;
        }
        this.#listener.ensure();
        const pollMs = this.#listener.isListening() ? POLL_MS : UNNOTIFIED_POLL_MS;
        await wakeup.wait(rows === null ? RETRY_MS : pollMs, signal);
      }
    } finally {
      this.#following.delete(wakeup);
    }
  }

  /** Wakes the followers of this process at once and those of other processes by a notification. */
  committed(): void {
    this.#wake();
    if (this.#options.hasOtherListeners()) this.#notify();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#notifying) clearTimeout(this.#notifying);
    this.#wake();
    await this.#listener.close();
  }

  /** Reads after a position; null if the read failed. */
  async #read(
    after: Position | null,
    { events, bytes }: ReadSize,
    prefixes: readonly string[] | undefined,
  ): Promise<pg.QueryResultRow[] | null> {
    const query = prefixes
      ? { name: 'follow_some', text: SOME, values: [after ?? -1n, events, bytes, prefixes] }
      : { name: 'follow_all', text: ALL, values: [after ?? -1n, events, bytes] };
    try {
      return (await this.#options.pool.query(query)).rows;
    } catch (error) {
      this.#options.onStall(error as Error, after);
      return null;
    }
  }

  #visible(rows: pg.QueryResultRow[], { includeExpired }: FollowOptions): readonly RecordedEvent[] {
    const instant = this.#options.now();
    // The last row of a filtered read may be a position without an event.
    return rows
      .filter((row) => row.stream !== null)
      .map(toRecordedEvent)
      .filter((event) => includeExpired || !isHidden(event, instant));
  }

  #wake(): void {
    for (const wakeup of this.#following) wakeup.wake();
  }

  #notify(): void {
    this.#notifyAgain = this.#notifying !== null;
    if (this.#notifyAgain) return;
    void notify(this.#options.pool, CHANNEL, this.#own).catch(() => undefined);
    this.#notifying = setTimeout(() => {
      this.#notifying = null;
      if (this.#notifyAgain) this.#notify();
    }, NOTIFY_MS);
  }
}

type ReadSize = { readonly events: number; readonly bytes: number };

const shrunk = ({ events, bytes }: ReadSize): ReadSize => ({
  events: Math.max(1, Math.floor(events / SHRINK)),
  bytes: Math.max(MIN_READ_BYTES, Math.floor(bytes / SHRINK)),
});

/** Returns whether the size ended a read of all streams, and not the end of the log. */
const isFull = (rows: readonly pg.QueryResultRow[], { events, bytes }: ReadSize): boolean =>
  rows.length >= events || Number(rows.at(-1)?.bytes) >= bytes;

const grown = ({ events, bytes }: ReadSize, limit: ReadSize): ReadSize => ({
  events: Math.min(limit.events, events * 2),
  bytes: Math.min(limit.bytes, bytes * 2),
});

/** Limits a read by stored bytes; the row that passes the limit is included. */
const WITHIN_BYTES = `where coalesce(e.bytes_before, 0) < $3 order by e.position`;
const BYTES_BEFORE = `
  sum(pg_column_size(e.data) + pg_column_size(e.metadata))
    over (order by e.position rows between unbounded preceding and 1 preceding) as bytes_before`;

const ALL = `
  select ${COLUMNS}, coalesce(e.bytes_before, 0) + pg_column_size(e.data) + pg_column_size(e.metadata) as bytes from (
    select e.*, ${BYTES_BEFORE} from eventlog.event e where e.position > $1 order by e.position limit $2) e
  ${WITHIN_BYTES}`;

/**
 * Selects events of the wanted streams, then a last row with the position that the read has covered: the end of the
 * span, unless the limit was reached first.
 */
const SOME = `
  with span as (
         select position, stream from eventlog.event where position > $1 order by position limit ${SPAN}),
       wanted as (
         select position from span where stream ^@ any ($4::text[]) order by position limit $2),
       upto as (
         select case when (select count(*) from wanted) < $2 then (select max(position) from span)
                     else (select max(position) from wanted) end as position)
  select ${COLUMNS} from (
    select e.*, ${BYTES_BEFORE} from (
      select u.position, e.stream, e.revision, e.id, e.type, e.data, e.metadata
      from (select position from wanted union select position from upto where position is not null) u
      left join eventlog.event e on e.position = u.position and e.position in (select position from wanted)) e) e
  ${WITHIN_BYTES}`;
