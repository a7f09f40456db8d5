import pg from 'pg';
import { endClient } from '../../platform/end-postgres.ts';
import { endsWithin } from '../../platform/pause.ts';
import type { Serialised } from '../append-check.ts';
import {
  type Appended,
  type ExpectedRevision,
  OutcomeUnknown,
  type Position,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';

interface Pending {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly Serialised[];
  readonly deadline: number;
  resolve(appended: Appended): void;
  reject(reason: Error): void;
}

interface Outcome {
  readonly outcome: 'appended' | 'conflict' | 'expired';
  readonly revision: number;
  readonly position: string | null;
}

export interface Committer {
  append(stream: string, expected: ExpectedRevision, events: readonly Serialised[]): Promise<Appended>;
  close(): Promise<void>;
}

export interface CommitterOptions {
  readonly url: string;
  /** Milliseconds after which an unanswered append counts as an unknown outcome. */
  readonly deadlineMs: number;
  /** Called after each commit with the last position in it. */
  readonly committed: (position: Position) => void;
}

const BATCH_EVENTS = 512;
const BATCH_BYTES = 4 * 1_048_576;
/** Shorter queues are never rejected, however slow the last commit was. */
const MIN_QUEUE_TO_REJECT = 1_000;
const BUSY_AFTER_MS = 2_000;
/** Time that running appends get at close, before the connection is cut. */
const CLOSE_MS = 2_000;

const expectedCode = (expected: ExpectedRevision): number =>
  expected === 'no_stream' ? -1 : expected === 'any' ? -2 : expected === 'stream_exists' ? -4 : expected;

/**
 * Creates the group commit: appends that arrive during one transaction share the next. One connection keeps the process's
 * appends in order. After a lost connection it resends the same ids, which is idempotent, until the deadline; then the
 * outcome is unknown.
 */
export const createCommitter = ({ url, deadlineMs, committed }: CommitterOptions): Committer => {
  let queue: Pending[] = [];
  let running: Promise<void> | null = null;
  let client: pg.Client | null = null;
  let closed = false;
  /** Appends per millisecond, as a moving average; estimates whether the queue is too long. */
  let pace = 10;

  const connect = async (remainingMs: number): Promise<pg.Client> => {
    if (client) return client;
    const fresh = new pg.Client({
      connectionString: url,
      application_name: 'doorplate append',
      connectionTimeoutMillis: Math.max(1, Math.min(remainingMs, 2_000)),
      keepAlive: true,
    });
    // Without a listener, a lost backend would end this process.
    fresh.on('error', () => forget(fresh));
    await fresh.connect();
    await fresh.query('set synchronous_commit = on');
    client = fresh;
    return fresh;
  };

  const forget = (dead: pg.Client): void => {
    if (client === dead) client = null;
    void dead.end().catch(() => undefined);
  };

  const commit = async (batch: readonly Pending[]): Promise<void> => {
    const deadline = Math.min(...batch.map((append) => append.deadline));
    if (closed) return fail(batch, new StoreUnavailable('the event store is closed'));
    let sent = false;
    for (let attempt = 0; ; attempt += 1) {
      let connection: pg.Client | null = null;
      try {
        connection = await connect(deadline - performance.now());
        sent = true;
        settle(batch, await within(connection.query<Outcome>(statement(batch)), deadline));
        return;
      } catch (error) {
        if (isRefusal(error)) return commitSeparately(batch, error as Error);
        if (connection) forget(connection);
        if (closed || performance.now() >= deadline) {
          return fail(batch, sent ? new OutcomeUnknown(String(error)) : new StoreUnavailable(String(error)));
        }
        await pause(Math.min(20 * 2 ** attempt, 250));
      }
    }
  };

  /** After a rejected statement, commits each append separately, so that only the faulty one fails. */
  const commitSeparately = async (batch: readonly Pending[], error: Error): Promise<void> => {
    if (batch.length === 1) return fail(batch, new StoreUnavailable(error.message, { cause: error }));
    for (const append of batch) await commit([append]);
  };

  const settle = (batch: readonly Pending[], { rows }: pg.QueryResult<Outcome>): void => {
    let top: bigint | null = null;
    batch.forEach((append, index) => {
      const row = rows[index] as Outcome;
      if (row.outcome === 'expired') append.reject(new StreamExpired(append.stream));
      else if (row.outcome === 'conflict') {
        append.reject(new WrongExpectedRevision(append.stream, row.revision < 0 ? null : row.revision));
      } else {
        const position = row.position === null ? null : (BigInt(row.position) as Position);
        if (position !== null && (top === null || position > top)) top = position;
        append.resolve({ revision: row.revision, position });
      }
    });
    if (top !== null) committed(top);
  };

  const run = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = takeBatch(queue);
      queue = queue.slice(batch.length);
      const before = performance.now();
      await commit(batch);
      pace += 0.1 * (batch.length / Math.max(0.1, performance.now() - before) - pace);
      // After a group, waiting a turn lets the next appends of its callers share a commit. A single append needs no
      // wait: there is probably no other caller.
      if (batch.length > 1) await nextTurn();
    }
    running = null;
  };

  return {
    append: (stream, expected, events) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(new StoreUnavailable('the event store is closed'));
        if (queue.length > MIN_QUEUE_TO_REJECT && queue.length > pace * BUSY_AFTER_MS) {
          return reject(new StoreBusy(`${queue.length} appends are waiting`));
        }
        queue.push({ stream, expected, events, deadline: performance.now() + deadlineMs, resolve, reject });
        // On the next turn of the event loop, so that appends of this turn share the transaction.
        running ??= nextTurn().then(run);
      }),
    close: async () => {
      await endsWithin(running ?? Promise.resolve(), CLOSE_MS);
      // Running and waiting appends now fail with the connection.
      closed = true;
      if (client) await endClient(client);
    },
  };
};

const fail = (batch: readonly Pending[], error: Error): void => {
  for (const append of batch) append.reject(error);
};

const takeBatch = (queue: readonly Pending[]): Pending[] => {
  let events = 0;
  let bytes = 0;
  const end = queue.findIndex((append, index) => {
    events += append.events.length;
    bytes += append.events.reduce((sum, event) => sum + event.data.length + event.metadata.length, 0);
    return index > 0 && (events > BATCH_EVENTS || bytes > BATCH_BYTES);
  });
  return queue.slice(0, end < 0 ? queue.length : end);
};

const statement = (batch: readonly Pending[]): pg.QueryConfig => {
  const events = batch.flatMap((append) => append.events);
  return {
    name: 'append_batch',
    text: 'select outcome, revision, "position" from eventlog.append_batch($1,$2,$3,$4,$5,$6,$7)',
    values: [
      batch.map((append) => append.stream),
      batch.map((append) => expectedCode(append.expected)),
      batch.map((append) => append.events.length),
      events.map((event) => event.id),
      events.map((event) => event.type),
      events.map((event) => event.data),
      events.map((event) => event.metadata),
    ],
  };
};

/** Returns whether the server rejected the statement itself, so that nothing was or will be written. */
const isRefusal = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && !/^(08|53|57P)/.test(error.code ?? '');

const within = <T>(work: Promise<T>, deadline: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error('no answer in time')),
      Math.max(0, deadline - performance.now()),
    );
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** Waits a turn of the event loop, in which its sockets are read. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
