import pg from 'pg';
import { endsWithin, nextTurn, pause, within } from '../../platform/clock/waiting.ts';
import { connectClient, createClient, endClient } from '../../platform/postgres/pool.ts';
import {
  type Appended,
  type ExpectedRevision,
  OutcomeUnknown,
  type Position,
  type Serialised,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';

/** An append that waits for its transaction. */
export interface Pending {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly Serialised[];
  readonly deadline: number;
  resolve(appended: Appended): void;
  reject(reason: Error): void;
}

/** The result of one append of a batch. */
export interface Outcome {
  readonly outcome: 'appended' | 'conflict' | 'expired';
  readonly revision: number;
  readonly position: string | null;
}

const BATCH_EVENTS = 512;
const BATCH_BYTES = 4 * 1_048_576;

/** Returns the first appends of a queue that fit into one transaction; always at least one. */
function takeBatch(queue: readonly Pending[]): Pending[] {
  let events = 0;
  let bytes = 0;
  const end = queue.findIndex((append, index) => {
    events += append.events.length;
    bytes += append.events.reduce((sum, event) => sum + event.data.length + event.metadata.length, 0);
    return index > 0 && (events > BATCH_EVENTS || bytes > BATCH_BYTES);
  });
  return queue.slice(0, end < 0 ? queue.length : end);
}

/**
 * All at once where each goes to another stream; otherwise one after the other, because the later depends on the earlier. One alone
 * is cheaper that way as well.
 */
function statement(batch: readonly Pending[]): pg.QueryConfig {
  const isAtOnce = batch.length > 1 && new Set(batch.map(({ stream }) => stream)).size === batch.length;
  const events = batch.flatMap((append) => append.events);
  const values = [
    batch.map((append) => append.stream),
    batch.map((append) => expectedCode(append.expected)),
    batch.map((append) => append.events.length),
    events.map((event) => event.id),
    events.map((event) => event.type),
    events.map((event) => event.data),
    events.map((event) => event.metadata),
  ];
  if (!isAtOnce) return { name: 'append_batch', text: ONE_BY_ONE, values };
  const appends = batch.flatMap((append, index) => append.events.map(() => index + 1));
  const numbers = batch.flatMap((append) => append.events.map((_, index) => index + 1));
  return { name: 'append_streams', text: AT_ONCE, values: [...values, appends, numbers] };
}

const ONE_BY_ONE = 'select outcome, revision, "position" from eventlog.append_batch($1,$2,$3,$4,$5,$6,$7)';
const AT_ONCE =
  'select outcome, revision, "position" from eventlog.append_streams($1,$2,$3,$4,$5,$6,$7,$8,$9)';

const expectedCode = (expected: ExpectedRevision): number =>
  expected === 'no_stream' ? -1 : expected === 'any' ? -2 : expected === 'stream_exists' ? -4 : expected;

/** Settles the appends of a committed batch. @returns the last position in it; null if nothing was written */
function settle(batch: readonly Pending[], outcomes: readonly Outcome[]): Position | null {
  let top: Position | null = null;
  batch.forEach((append, index) => {
    const { outcome, revision, position } = outcomes[index] as Outcome;
    if (outcome === 'expired') append.reject(new StreamExpired(append.stream));
    else if (outcome === 'conflict') {
      append.reject(new WrongExpectedRevision(append.stream, revision < 0 ? null : revision));
    } else {
      const at = position === null ? null : (BigInt(position) as Position);
      if (at !== null && (top === null || at > top)) top = at;
      append.resolve({ revision, position: at });
    }
  });
  return top;
}

function fail(batch: readonly Pending[], error: Error): void {
  for (const append of batch) append.reject(error);
}

export interface CommitterOptions {
  readonly url: string;
  /** Milliseconds after which an unanswered append counts as an unknown outcome. */
  readonly deadlineMs: number;
  /** Called after each commit with the last position in it. */
  readonly committed: (position: Position) => void;
}

/** Shorter queues are never rejected, however slow the last commit was. */
const MIN_QUEUE_TO_REJECT = 1_000;
const BUSY_AFTER_MS = 2_000;
/** An append that has less than this part of its deadline left is not sent. */
const MIN_LEFT = 1 / 8;
/**
 * Time after which PostgreSQL notices that the connection of a waiting append is closed, and ends it: its caller has answered that the
 * outcome is unknown, and a process that has ended cannot correct it later.
 */
const GIVEN_UP_AFTER = '250ms';
const SETTINGS = `-c synchronous_commit=on -c client_connection_check_interval=${GIVEN_UP_AFTER}`;
/** Time that running appends get at close, before the connection is cut. */
const CLOSE_MS = 2_000;

/**
 * The group commit: appends that arrive during one transaction share the next. One connection keeps the process's
 * appends in order. After a lost connection it resends the same ids, which is idempotent, until the deadline; then the
 * outcome is unknown.
 */
export class Committer {
  readonly #options: CommitterOptions;
  #queue: Pending[] = [];
  #running: Promise<void> | null = null;
  #client: pg.Client | null = null;
  #isClosed = false;
  /** Appends per millisecond, as a moving average; estimates whether the queue is too long. */
  #pace = 10;

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  append(stream: string, expected: ExpectedRevision, events: readonly Serialised[]): Promise<Appended> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new StoreUnavailable('the event store is closed'));
      const { length } = this.#queue;
      if (length > MIN_QUEUE_TO_REJECT && length > this.#pace * BUSY_AFTER_MS) {
        return reject(new StoreBusy(`${length} appends are waiting`));
      }
      const deadline = performance.now() + this.#options.deadlineMs;
      this.#queue.push({ stream, expected, events, deadline, resolve, reject });
      // On the next turn of the event loop, so that appends of this turn share the transaction.
      this.#running ??= nextTurn().then(() => this.#run());
    });
  }

  async close(): Promise<void> {
    await endsWithin(this.#running ?? Promise.resolve(), CLOSE_MS);
    // Running and waiting appends now fail with the connection.
    this.#isClosed = true;
    if (this.#client) await endClient(this.#client);
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      this.#refuseOld();
      const batch = takeBatch(this.#queue);
      if (batch.length === 0) break;
      this.#queue = this.#queue.slice(batch.length);
      const before = performance.now();
      await this.#commit(batch);
      this.#pace += 0.1 * (batch.length / Math.max(0.1, performance.now() - before) - this.#pace);
      // After a group, waiting a turn lets the next appends of its callers share a commit. A single append needs no
      // wait: there is probably no other caller.
      if (batch.length > 1) await nextTurn();
    }
    this.#running = null;
  }

  /** The oldest append sets the limit of its batch: with little time left it would only make all outcomes unknown. */
  #refuseOld(): void {
    const least = performance.now() + this.#options.deadlineMs * MIN_LEFT;
    const old = this.#queue.filter(({ deadline }) => deadline < least);
    this.#queue = this.#queue.filter(({ deadline }) => deadline >= least);
    fail(old, new StoreBusy('waited too long for the appends before it'));
  }

  async #commit(batch: readonly Pending[]): Promise<void> {
    const deadline = Math.min(...batch.map((append) => append.deadline));
    if (this.#isClosed) return fail(batch, new StoreUnavailable('the event store is closed'));
    let mayBeWritten = false;
    for (let attempt = 0; ; attempt += 1) {
      let connection: pg.Client | null = null;
      try {
        connection = this.#client ?? (await this.#connect(deadline - performance.now()));
        const { rows } = await within(
          connection.query<Outcome>(statement(batch)),
          deadline - performance.now(),
          noAnswer,
        );
        const top = settle(batch, rows);
        if (top !== null) this.#options.committed(top);
        return;
      } catch (error) {
        // A server that refuses all writes says nothing about an earlier attempt, which another may have committed.
        if (connection && isRefusal(error) && !mayBeWritten) return this.#commitHalves(batch, error as Error);
        if (connection) {
          this.#forget(connection);
          mayBeWritten ||= !isReadOnly(error);
        }
        if (this.#isClosed || performance.now() >= deadline || (isReadOnly(error) && !mayBeWritten)) {
          return fail(batch, new (mayBeWritten ? OutcomeUnknown : StoreUnavailable)(String(error)));
        }
        await pause(Math.min(20 * 2 ** attempt, 250));
      }
    }
  }

  /** After a rejected statement, commits each half of the batch, so that only the faulty append fails, after few further commits. */
  async #commitHalves(batch: readonly Pending[], error: Error): Promise<void> {
    if (batch.length === 1) return fail(batch, new StoreUnavailable(error.message, { cause: error }));
    const half = Math.ceil(batch.length / 2);
    await this.#commit(batch.slice(0, half));
    await this.#commit(batch.slice(half));
  }

  async #connect(remainingMs: number): Promise<pg.Client> {
    const fresh = createClient(this.#options.url, 'doorplate append', {
      settings: SETTINGS,
      connectionTimeoutMillis: Math.max(1, Math.min(remainingMs, 2_000)),
    });
    // Without a listener, a lost backend would end this process.
    fresh.on('error', () => this.#forget(fresh));
    await connectClient(fresh);
    this.#client = fresh;
    return fresh;
  }

  #forget(dead: pg.Client): void {
    if (this.#client === dead) this.#client = null;
    void dead.end().catch(() => undefined);
  }
}

/** Returns whether the server rejected the statement itself, so that nothing was or will be written. */
const isRefusal = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && !/^(08|53|57P)/.test(error.code ?? '') && !isReadOnly(error);

/**
 * Returns whether the session accepts no writes at all, so that nothing was written. It stays so where a name led to a standby for a
 * moment, while new sessions reach the primary.
 */
const isReadOnly = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === READ_ONLY_TRANSACTION;

const READ_ONLY_TRANSACTION = '25006';

const noAnswer = (): Error => new Error('no answer in time');
