import { HOUR } from '../../domain/kernel/time.ts';
import {
  type EventStore,
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import { backoffMs } from '../../platform/backoff.ts';
import { type Clock, iso } from '../../platform/clock.ts';
import { pause } from '../../platform/pause.ts';
import { withoutTrace } from '../../platform/spans.ts';
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
} from './count-groups.ts';
import { type CountAppend, type CountEvents, createCountStreams } from './count-streams.ts';

export interface GroupCounter<Row> {
  /** Resolves once the count is durable. @throws CountNotDurable */
  count(row: Row): Promise<void>;
  close(): Promise<void>;
}

const RETRY = { firstMs: 50, mostMs: 250 } as const;
/** An append waits for more counts when at least this many share it. */
const MIN_GROUP_TO_WAIT = 8;
const GATHER_MS = 2;
const CORRECTIONS_MS = 1_000;

/** Counts responses of this process by group commit: counts that arrive during one append share the next. */
export const createGroupCounter = <Row extends readonly [string, string, ...unknown[]]>(
  store: EventStore,
  clock: Clock,
  counted: Sums<Row> & CountEvents<Row>,
): GroupCounter<Row> => {
  const streams = createCountStreams<Row>(store, clock, counted);
  const waiting = createWaitingGroups(counted);
  let writing: readonly Group<Row>[] = [];
  let state: 'idle' | 'gathering' | 'writing' | 'backing off' = 'idle';
  let running: Promise<void> = Promise.resolve();
  let gathered: { readonly answers: number; resolve(): void } | null = null;
  /** Stops waiting for an append whose groups are all refused. */
  let abandon = (): void => undefined;
  let watching: NodeJS.Timeout | null = null;
  let failures = 0;
  let isClosed = false;

  /** Refuses groups that have timed out, even while an append hangs. */
  const watch = (): void => {
    const now = performance.now();
    waiting.expire(now);
    expire(writing, now);
    if (writing.every(isRefused)) abandon();
    const isIdle = waiting.isEmpty() && writing.length === 0;
    watching = isIdle ? null : setTimeout(watch, GROUP_MS);
  };

  const backOff = (): Promise<void> => {
    failures += 1;
    state = 'backing off';
    return pause(backoffMs(failures, RETRY));
  };

  /** Sends the append until its outcome is known or all of its groups are refused. */
  const send = async (append: CountAppend<Row>, batch: readonly Group<Row>[]): Promise<Outcome> => {
    const abandoned = new Promise<void>((resolve) => {
      abandon = resolve;
    });
    let isDoubtful = false;
    while (!batch.every(isRefused)) {
      state = 'writing';
      const sent = append.send().then(
        () => null,
        (error: unknown) => error,
      );
      const error = await Promise.race([sent, abandoned]);
      if (error === null) return 'written';
      if (error instanceof OutcomeUnknown) isDoubtful = true;
      else if (error !== undefined && !isDoubtful) return notWritten(batch, error);
      // The stream has moved on, with or without the doubtful append.
      else if (isMoved(error)) {
        append.takeBack(rowsOf(batch, counted));
        return 'not written';
      }
      await Promise.race([backOff(), abandoned]);
    }
    append.takeBack(rowsOf(batch, counted));
    return 'taken back';
  };

  const notWritten = (batch: readonly Group<Row>[], error: unknown): Outcome => {
    if (isMoved(error)) streams.startAfresh();
    else if (!(error instanceof StoreUnavailable || error instanceof StoreBusy)) refuseAll(batch, error);
    return 'not written';
  };

  const write = async (batch: readonly Group<Row>[]): Promise<void> => {
    for (const group of batch) group.state = 'writing';
    writing = batch;
    const append = streams.begin((batch[0] as Group<Row>).day, rowsOf(batch, counted));
    const outcome = await send(append, batch);
    const refused = batch.filter(isRefused);
    const others = batch.filter((group) => !isRefused(group));
    if (outcome === 'not written') {
      waiting.putBack(others);
      await backOff();
      return;
    }
    failures = 0;
    for (const group of others) {
      group.state = 'durable';
      group.durable.resolve();
    }
    if (outcome === 'written' && refused.length > 0) append.takeBack(rowsOf(refused, counted));
  };

  const run = async (): Promise<void> => {
    let groupSize = 0;
    while (!waiting.isEmpty()) {
      // An append costs more than the responses that share it. Waiting for half of the last group is enough: it is
      // answered while the other half is counted.
      if (groupSize >= MIN_GROUP_TO_WAIT) await gather(groupSize / 2);
      const batch = waiting.take();
      // All groups may have been refused meanwhile.
      if (batch.length > 0) await write(batch).catch((error: unknown) => refuseAll(batch, error));
      writing = [];
      abandon = () => undefined;
      groupSize = answersOf(batch) + waiting.answers();
    }
    state = 'idle';
  };

  /** Waits until `answers` counts are waiting, or `GATHER_MS` is over. */
  const gather = async (answers: number): Promise<void> => {
    if (waiting.answers() >= answers) return;
    state = 'gathering';
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      gathered = {
        answers,
        resolve: () => {
          clearTimeout(timer);
          resolve();
        },
      };
    });
    gathered = null;
  };

  return {
    count: (row) => {
      if (isClosed) return Promise.reject(new CountNotDurable('the counter is closed'));
      const group = waiting.add(row);
      watching ??= setTimeout(watch, GROUP_MS);
      if (gathered && waiting.answers() >= gathered.answers) gathered.resolve();
      if (state === 'idle') {
        state = 'gathering';
        // After this turn of the event loop, so that requests read together share the append; without a trace, because
        // the append belongs to many requests.
        running = withoutTrace(() => new Promise<void>((resolve) => setImmediate(resolve)).then(run));
      }
      return group.durable.promise;
    },
    close: async () => {
      isClosed = true;
      await running;
      if (watching) clearTimeout(watching);
      await streams.close(CORRECTIONS_MS);
    },
  };
};

type Outcome = 'written' | 'not written' | 'taken back';

const isRefused = (group: { readonly state: string }): boolean => group.state === 'refused';

const refuseAll = (groups: readonly PendingCount[], cause: unknown): void => {
  for (const group of groups) if (group.state === 'writing') refuse(group, cause);
};

/** Whether the stream is at another revision than expected, or gone. */
const isMoved = (error: unknown): boolean =>
  error instanceof WrongExpectedRevision || error instanceof StreamExpired;

/** Formats the UTC hour of an instant as `YYYY-MM-DDTHH`, caching the last one. */
export const hourOf = (() => {
  let known = { number: -1, text: '' };
  return (at: number): string => {
    const number = Math.floor(at / HOUR);
    if (number !== known.number) known = { number, text: iso(at).slice(0, 13) };
    return known.text;
  };
})();
