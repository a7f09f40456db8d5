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
  /** Milliseconds after which an append without an answer is an unknown outcome. */
  readonly deadlineMs: number;
  /** Called after each commit with the last position in it. */
  readonly committed: (position: Position) => void;
}

const BATCH_EVENTS = 512;
const BATCH_BYTES = 4 * 1_048_576;
/** Below this many waiting appends the store is never called busy, however slow the last commit was. */
const NEVER_BUSY = 1_000;
const BUSY_AFTER_MS = 2_000;
/** How long a closing committer lets appends end, before it cuts its connection. */
const CLOSE_MS = 2_000;

const expectedCode = (expected: ExpectedRevision): number =>
  expected === 'no_stream' ? -1 : expected === 'any' ? -2 : expected === 'stream_exists' ? -4 : expected;

/**
 * Group commit: all appends that arrive while one transaction runs share the next. One connection, so that
 * the appends of a process keep their order. A lost connection is followed by a resend of the same ids,
 * which is harmless, until the deadline; then the outcome is unknown.
 */
export const createCommitter = ({ url, deadlineMs, committed }: CommitterOptions): Committer => {
  let queue: Pending[] = [];
  let running: Promise<void> | null = null;
  let client: pg.Client | null = null;
  let closed = false;
  /** Appends a millisecond, smoothed: what 'busy' is estimated from. */
  let pace = 10;

  const connect = async (remainingMs: number): Promise<pg.Client> => {
    if (client) return client;
    const fresh = new pg.Client({
      connectionString: url,
      application_name: 'doorplate append',
      connectionTimeoutMillis: Math.max(1, Math.min(remainingMs, 2_000)),
      keepAlive: true,
    });
    // Without a listener the death of the backend would end this process.
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
        if (isRefusal(error)) return alone(batch, error as Error);
        if (connection) forget(connection);
        if (closed || performance.now() >= deadline) {
          return fail(batch, sent ? new OutcomeUnknown(String(error)) : new StoreUnavailable(String(error)));
        }
        await pause(Math.min(20 * 2 ** attempt, 250));
      }
    }
  };

  /** The server refused the statement: find the one append at fault, so that the others don't pay for it. */
  const alone = async (batch: readonly Pending[], error: Error): Promise<void> => {
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
      // In a crowd, what has arrived by now and the next appends of those just told share a commit instead of taking one
      // each. Whoever appends alone goes on at once: it has gathered its crowd itself.
      if (batch.length > 1) await nextTurn();
    }
    running = null;
  };

  return {
    append: (stream, expected, events) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(new StoreUnavailable('the event store is closed'));
        if (queue.length > NEVER_BUSY && queue.length > pace * BUSY_AFTER_MS) {
          return reject(new StoreBusy(`${queue.length} appends are waiting`));
        }
        queue.push({ stream, expected, events, deadline: performance.now() + deadlineMs, resolve, reject });
        // A turn of the event loop later, so that appends of this turn share the first transaction too.
        running ??= nextTurn().then(run);
      }),
    close: async () => {
      await endsWithin(running ?? Promise.resolve(), CLOSE_MS);
      // What is under way now fails with its connection, and what waits with it.
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

/** The server's own refusal of the statement (not of the connection): nothing was written, and never will be. */
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
/** Of the event loop: what its sockets hold is read before. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
