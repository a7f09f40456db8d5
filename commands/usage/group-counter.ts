import {
  type EventStore,
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { backoffMs, createWakeup, nextTurn, pause } from '../../platform/clock/waiting.ts';
import { withoutTrace } from '../../platform/telemetry/spans.ts';
import {
  type CountAppend,
  type CountEvents,
  type CountStreams,
  createCountStreams,
} from './count-streams.ts';

/** Maximum wait for more counts. */
const BATCH_WINDOW_MS = 2;

/** The count was not durable in time (contract, Requests 11). Its answer says so and is not counted. */
export class CountNotDurable extends Error {}

/** How rows are keyed and added up; a row begins with its key and hour. */
interface Sums<Row> {
  keyOf(row: Row): string;
  plus(sum: Row | undefined, row: Row): Row;
}

/**
 * Counts that share one promise: those of one UTC day within a few milliseconds, or 100 while an append is running.
 *
 * waiting: not sent, or known not to be written. writing: sent, outcome unknown. durable: written and confirmed.
 * refused: reported as not counted; if it is written after all, a correction reverses it.
 */
interface Group<Row> {
  state: 'waiting' | 'writing' | 'durable' | 'refused';
  readonly openedAt: number;
  readonly durable: PromiseWithResolvers<void>;
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly rows: Map<string, Row>;
  answers: number;
}

/** How long a group accepts counts, milliseconds. */
const GROUP_MS = 100;
/** Limit of a group and of an append, far below 1 MiB. */
const MAX_ROWS = 5_000;
/** A count is refused if its append has not started after this time, milliseconds. */
const WAITING_MS = 2_000;
/** A count is refused if its append is not confirmed after this time, milliseconds. */
const WRITING_MS = 4_000;

function refuse(group: Group<unknown>, cause?: unknown): void {
  group.state = 'refused';
  group.durable.reject(new CountNotDurable('a count was not durable in time', { cause }));
}

/** Refuses groups that have timed out. `now`: monotonic, milliseconds. */
function expire(groups: readonly Group<unknown>[], now: number): void {
  for (const group of groups) {
    const limitMs = { waiting: WAITING_MS, writing: WRITING_MS, durable: null, refused: null }[group.state];
    if (limitMs !== null && now - group.openedAt >= limitMs) refuse(group);
  }
}

const answersOf = (groups: readonly { readonly answers: number }[]): number =>
  groups.reduce((sum, { answers }) => sum + answers, 0);

/** Adds up the rows of all groups. */
function rowsOf<Row>(groups: readonly Group<Row>[], { plus }: Sums<Row>): Row[] {
  const sums = new Map<string, Row>();
  for (const { rows } of groups) for (const [key, row] of rows) sums.set(key, plus(sums.get(key), row));
  return [...sums.values()];
}

const RETRY = { firstMs: 50, mostMs: 250 } as const;
/** An append waits for more counts when at least this many share it. */
const MIN_GROUP_TO_WAIT = 8;
const CORRECTIONS_MS = 1_000;

/** A sequence of appends to streams of its own. */
interface Lane<Row> {
  readonly streams: CountStreams<Row>;
  writing: readonly Group<Row>[];
  isRunning: boolean;
  running: Promise<void>;
  /** Stops waiting for an append whose groups are all refused. */
  abandon: () => void;
  failures: number;
}

/**
 * Counts responses of this process by group commit: counts that arrive while as many appends are running as the store commits
 * side by side share the next.
 */
export class GroupCounter<Row extends readonly [string, string, ...unknown[]]> {
  readonly #sums: Sums<Row>;
  readonly #lanes: readonly Lane<Row>[];
  /** Groups whose append has not started, oldest first. */
  #waiting: Group<Row>[] = [];
  readonly #batchWindow = createWakeup();
  /** Number of waiting counts that ends the batch window. */
  #wanted = Number.POSITIVE_INFINITY;
  /** Whether a lane is about to take what waits. */
  #isGathering = false;
  #watching: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(store: EventStore, clock: Clock, counted: Sums<Row> & CountEvents<Row>) {
    this.#sums = counted;
    this.#lanes = Array.from({ length: store.concurrentCommits }, () => ({
      streams: createCountStreams<Row>(store, clock, counted),
      writing: [],
      isRunning: false,
      running: Promise.resolve(),
      abandon: ignore,
      failures: 0,
    }));
  }

  /** Resolves once the count is durable. @throws CountNotDurable */
  count(row: Row): Promise<void> {
    if (this.#isClosed) return Promise.reject(new CountNotDurable('the counter is closed'));
    const group = this.#openGroup(row[1].slice(0, 10));
    const key = this.#sums.keyOf(row);
    group.rows.set(key, this.#sums.plus(group.rows.get(key), row));
    group.answers += 1;
    this.#watching ??= setTimeout(() => this.#watch(), GROUP_MS);
    if (answersOf(this.#waiting) >= this.#wanted) this.#batchWindow.wake();
    const idle = this.#isGathering ? undefined : this.#lanes.find(({ isRunning }) => !isRunning);
    if (idle) {
      this.#isGathering = true;
      idle.isRunning = true;
      // After this turn of the event loop, so that requests read together share the append; without a trace, because
      // the append belongs to many requests.
      idle.running = withoutTrace(() => nextTurn().then(() => this.#run(idle)));
    }
    return group.durable.promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // A lane leaves what waits to another that gathers, which is running then.
    while (this.#lanes.some(({ isRunning }) => isRunning))
      await Promise.all(this.#lanes.map(({ running }) => running));
    if (this.#watching) clearTimeout(this.#watching);
    await Promise.all(this.#lanes.map(({ streams }) => streams.close(CORRECTIONS_MS)));
  }

  /** Refuses groups that have timed out, even while an append hangs. */
  #watch(): void {
    const now = performance.now();
    expire(this.#waiting, now);
    this.#waiting = this.#waiting.filter((group) => !isRefused(group));
    for (const { writing, abandon } of this.#lanes) {
      expire(writing, now);
      if (writing.every(isRefused)) abandon();
    }
    const isIdle = this.#waiting.length === 0 && this.#lanes.every(({ writing }) => writing.length === 0);
    this.#watching = isIdle ? null : setTimeout(() => this.#watch(), GROUP_MS);
  }

  async #run(lane: Lane<Row>): Promise<void> {
    let groupSize = 0;
    do {
      this.#isGathering = true;
      // An append costs more than the responses that share it. Waiting for half of the last group is enough: it is
      // answered while the other half is counted.
      if (groupSize >= MIN_GROUP_TO_WAIT) await this.#waitFor(groupSize / 2);
      const batch = this.#take();
      this.#isGathering = false;
      // All groups may have been refused meanwhile.
      if (batch.length > 0) await this.#write(lane, batch).catch((error: unknown) => refuseAll(batch, error));
      lane.writing = [];
      lane.abandon = ignore;
      groupSize = answersOf(batch) + answersOf(this.#waiting);
    } while (this.#waiting.length > 0 && !this.#isGathering);
    lane.isRunning = false;
  }

  #openGroup(day: string): Group<Row> {
    const now = performance.now();
    const last = this.#waiting.at(-1);
    const isOpen = last?.day === day && last.rows.size < MAX_ROWS && now - last.openedAt < GROUP_MS;
    if (last && isOpen) return last;
    const durable = Promise.withResolvers<void>();
    // Without a caller, the rejection would be unhandled and end the process.
    durable.promise.catch(() => undefined);
    const group: Group<Row> = { state: 'waiting', openedAt: now, day, rows: new Map(), answers: 0, durable };
    this.#waiting.push(group);
    return group;
  }

  async #waitFor(answers: number): Promise<void> {
    if (answersOf(this.#waiting) >= answers) return;
    this.#wanted = answers;
    await this.#batchWindow.wait(BATCH_WINDOW_MS);
    this.#wanted = Number.POSITIVE_INFINITY;
  }

  /** Takes the groups of one append: one day, within `MAX_ROWS`. */
  #take(): Group<Row>[] {
    let rows = 0;
    const end = this.#waiting.findIndex((group, index) => {
      rows += group.rows.size;
      return group.day !== this.#waiting[0]?.day || (index > 0 && rows > MAX_ROWS);
    });
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
  }

  async #write(lane: Lane<Row>, batch: readonly Group<Row>[]): Promise<void> {
    for (const group of batch) group.state = 'writing';
    lane.writing = batch;
    const append = lane.streams.begin((batch[0] as Group<Row>).day, rowsOf(batch, this.#sums));
    const outcome = await this.#send(lane, append, batch);
    const refused = batch.filter(isRefused);
    const others = batch.filter((group) => !isRefused(group));
    if (outcome === 'not written') {
      for (const group of others) group.state = 'waiting';
      this.#waiting.unshift(...others);
      await backOff(lane);
      return;
    }
    lane.failures = 0;
    for (const group of others) {
      group.state = 'durable';
      group.durable.resolve();
    }
    if (outcome === 'written' && refused.length > 0) append.takeBack(rowsOf(refused, this.#sums));
  }

  /** Sends the append until its outcome is known or all of its groups are refused. */
  async #send(lane: Lane<Row>, append: CountAppend<Row>, batch: readonly Group<Row>[]): Promise<Outcome> {
    const abandoned = new Promise<void>((resolve) => {
      lane.abandon = resolve;
    });
    let isDoubtful = false;
    while (!batch.every(isRefused)) {
      const sent = append.send().then(
        () => null,
        (error: unknown) => error,
      );
      const error = await Promise.race([sent, abandoned]);
      if (error === null) return 'written';
      if (error instanceof OutcomeUnknown) isDoubtful = true;
      else if (error !== undefined && !isDoubtful) return notWritten(lane, batch, error);
      // The stream has moved on, with or without the doubtful append.
      else if (isMoved(error)) {
        append.takeBack(rowsOf(batch, this.#sums));
        return 'not written';
      }
      await Promise.race([backOff(lane), abandoned]);
    }
    append.takeBack(rowsOf(batch, this.#sums));
    return 'taken back';
  }
}

function notWritten<Row>({ streams }: Lane<Row>, batch: readonly Group<Row>[], error: unknown): Outcome {
  if (isMoved(error)) streams.startAfresh();
  else if (!(error instanceof StoreUnavailable || error instanceof StoreBusy)) refuseAll(batch, error);
  return 'not written';
}

function backOff(lane: Lane<unknown>): Promise<void> {
  lane.failures += 1;
  return pause(backoffMs(lane.failures, RETRY));
}

const ignore = (): void => undefined;

type Outcome = 'written' | 'not written' | 'taken back';

const isRefused = ({ state }: Group<unknown>): boolean => state === 'refused';

function refuseAll(groups: readonly Group<unknown>[], cause: unknown): void {
  for (const group of groups) if (group.state === 'writing') refuse(group, cause);
}

/** Whether the stream is at another revision than expected, or gone. */
const isMoved = (error: unknown): boolean =>
  error instanceof WrongExpectedRevision || error instanceof StreamExpired;
