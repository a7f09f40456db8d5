import {
  type EventStore,
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { backoffMs, nextTurn, pause } from '../../platform/clock/waiting.ts';
import { withoutTrace } from '../../platform/telemetry/spans.ts';
import {
  answersOf,
  CountNotDurable,
  createWaitingGroups,
  expire,
  GROUP_MS,
  type Group,
  type PendingCount,
  refuse,
  rowsOf,
  type Sums,
  type WaitingGroups,
} from './count-groups.ts';
import {
  type CountAppend,
  type CountEvents,
  type CountStreams,
  createCountStreams,
} from './count-streams.ts';
import { Gathering } from './gathering.ts';

export interface GroupCounter<Row> {
  /** Resolves once the count is durable. @throws CountNotDurable */
  count(row: Row): Promise<void>;
  close(): Promise<void>;
}

const RETRY = { firstMs: 50, mostMs: 250 } as const;
/** An append waits for more counts when at least this many share it. */
const MIN_GROUP_TO_WAIT = 8;
const CORRECTIONS_MS = 1_000;

/** Counts responses of this process by group commit: counts that arrive during one append share the next. */
export const createGroupCounter = <Row extends readonly [string, string, ...unknown[]]>(
  store: EventStore,
  clock: Clock,
  counted: Sums<Row> & CountEvents<Row>,
): GroupCounter<Row> => new GroupCommitCounter(store, clock, counted);

class GroupCommitCounter<Row extends readonly [string, string, ...unknown[]]> implements GroupCounter<Row> {
  readonly #sums: Sums<Row>;
  readonly #streams: CountStreams<Row>;
  readonly #waiting: WaitingGroups<Row>;
  readonly #gathering = new Gathering();
  #writing: readonly Group<Row>[] = [];
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();
  /** Stops waiting for an append whose groups are all refused. */
  #abandon: () => void = ignore;
  #watching: NodeJS.Timeout | null = null;
  #failures = 0;
  #isClosed = false;

  constructor(store: EventStore, clock: Clock, counted: Sums<Row> & CountEvents<Row>) {
    this.#sums = counted;
    this.#streams = createCountStreams<Row>(store, clock, counted);
    this.#waiting = createWaitingGroups(counted);
  }

  count(row: Row): Promise<void> {
    if (this.#isClosed) return Promise.reject(new CountNotDurable('the counter is closed'));
    const group = this.#waiting.add(row);
    this.#watching ??= setTimeout(() => this.#watch(), GROUP_MS);
    this.#gathering.note(this.#waiting);
    if (!this.#isRunning) {
      this.#isRunning = true;
      // After this turn of the event loop, so that requests read together share the append; without a trace, because
      // the append belongs to many requests.
      this.#running = withoutTrace(() => nextTurn().then(() => this.#run()));
    }
    return group.durable.promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
    if (this.#watching) clearTimeout(this.#watching);
    await this.#streams.close(CORRECTIONS_MS);
  }

  /** Refuses groups that have timed out, even while an append hangs. */
  #watch(): void {
    const now = performance.now();
    this.#waiting.expire(now);
    expire(this.#writing, now);
    if (this.#writing.every(isRefused)) this.#abandon();
    const isIdle = this.#waiting.isEmpty() && this.#writing.length === 0;
    this.#watching = isIdle ? null : setTimeout(() => this.#watch(), GROUP_MS);
  }

  async #run(): Promise<void> {
    let groupSize = 0;
    while (!this.#waiting.isEmpty()) {
      // An append costs more than the responses that share it. Waiting for half of the last group is enough: it is
      // answered while the other half is counted.
      if (groupSize >= MIN_GROUP_TO_WAIT) await this.#gathering.wait(this.#waiting, groupSize / 2);
      const batch = this.#waiting.take();
      // All groups may have been refused meanwhile.
      if (batch.length > 0) await this.#write(batch).catch((error: unknown) => refuseAll(batch, error));
      this.#writing = [];
      this.#abandon = ignore;
      groupSize = answersOf(batch) + this.#waiting.answers();
    }
    this.#isRunning = false;
  }

  async #write(batch: readonly Group<Row>[]): Promise<void> {
    for (const group of batch) group.state = 'writing';
    this.#writing = batch;
    const append = this.#streams.begin((batch[0] as Group<Row>).day, rowsOf(batch, this.#sums));
    const outcome = await this.#send(append, batch);
    const refused = batch.filter(isRefused);
    const others = batch.filter((group) => !isRefused(group));
    if (outcome === 'not written') {
      this.#waiting.putBack(others);
      await this.#backOff();
      return;
    }
    this.#failures = 0;
    for (const group of others) {
      group.state = 'durable';
      group.durable.resolve();
    }
    if (outcome === 'written' && refused.length > 0) append.takeBack(rowsOf(refused, this.#sums));
  }

  /** Sends the append until its outcome is known or all of its groups are refused. */
  async #send(append: CountAppend<Row>, batch: readonly Group<Row>[]): Promise<Outcome> {
    const abandoned = new Promise<void>((resolve) => {
      this.#abandon = resolve;
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
      else if (error !== undefined && !isDoubtful) return this.#notWritten(batch, error);
      // The stream has moved on, with or without the doubtful append.
      else if (isMoved(error)) {
        append.takeBack(rowsOf(batch, this.#sums));
        return 'not written';
      }
      await Promise.race([this.#backOff(), abandoned]);
    }
    append.takeBack(rowsOf(batch, this.#sums));
    return 'taken back';
  }

  #notWritten(batch: readonly Group<Row>[], error: unknown): Outcome {
    if (isMoved(error)) this.#streams.startAfresh();
    else if (!(error instanceof StoreUnavailable || error instanceof StoreBusy)) refuseAll(batch, error);
    return 'not written';
  }

  #backOff(): Promise<void> {
    this.#failures += 1;
    return pause(backoffMs(this.#failures, RETRY));
  }
}

const ignore = (): void => undefined;

type Outcome = 'written' | 'not written' | 'taken back';

const isRefused = (group: { readonly state: string }): boolean => group.state === 'refused';

const refuseAll = (groups: readonly PendingCount[], cause: unknown): void => {
  for (const group of groups) if (group.state === 'writing') refuse(group, cause);
};

/** Whether the stream is at another revision than expected, or gone. */
const isMoved = (error: unknown): boolean =>
  error instanceof WrongExpectedRevision || error instanceof StreamExpired;
