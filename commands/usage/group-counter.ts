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
  /** Writes what is waiting, then ends. */
  close(): Promise<void>;
}

const RETRY = { firstMs: 50, mostMs: 250 } as const;
/** From so many answers an append waits for company. */
const MIN_GROUP_TO_WAIT = 8;
const GATHER_MS = 2;
const CORRECTIONS_MS = 1_000;

/** Counts the answers of this process by group commit: counts that arrive during one append share the next. */
export const createGroupCounter = <Row extends readonly [string, string, ...unknown[]]>(
  store: EventStore,
  clock: Clock,
  counted: Sums<Row> & CountEvents<Row>,
): GroupCounter<Row> => {
  const streams = createCountStreams<Row>(store, clock, counted);
  const waiting = createWaitingGroups(counted);
  /** Of the append under way. */
  let writing: readonly Group<Row>[] = [];
  let state: 'idle' | 'gathering' | 'writing' | 'resting' = 'idle';
  let running: Promise<void> = Promise.resolve();
  let gathered: { readonly answers: number; resolve(): void } | null = null;
  /** Ends the wait for an append all of whose groups are refused. */
  let abandon = (): void => undefined;
  let watching: NodeJS.Timeout | null = null;
  let failures = 0;
  let isClosed = false;

  /** Refuses what has waited for too long, also while an append hangs. */
  const watch = (): void => {
    const now = performance.now();
    waiting.expire(now);
    expire(writing, now);
    if (writing.every(isRefused)) abandon();
    const isIdle = waiting.isEmpty() && writing.length === 0;
    watching = isIdle ? null : setTimeout(watch, GROUP_MS);
  };

  const rest = (): Promise<void> => {
    failures += 1;
    state = 'resting';
    return pause(backoffMs(failures, RETRY));
  };

  /** Sends the append until its outcome is known, or until nobody waits for it any more. */
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
      // The stream has gone on: with the doubtful append or without it.
      else if (isMoved(error)) {
        append.takeBack(rowsOf(batch, counted));
        return 'not written';
      }
      await Promise.race([rest(), abandoned]);
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
      await rest();
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
    let crowd = 0;
    while (!waiting.isEmpty()) {
      // In a crowd an append costs more than the answers that share it. Half of the crowd is enough, so that it is
      // answered while the other half is being counted.
      if (crowd >= MIN_GROUP_TO_WAIT) await gather(crowd / 2);
      const batch = waiting.take();
      // All of them may have been refused meanwhile.
      if (batch.length > 0) await write(batch).catch((error: unknown) => refuseAll(batch, error));
      writing = [];
      abandon = () => undefined;
      crowd = answersOf(batch) + waiting.answers();
    }
    state = 'idle';
  };

  /** Waits until so many answers are waiting, or a short time is over. */
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
        // After this turn of the event loop, so that requests read together are counted together; and, being for
        // many requests, in the trace of none.
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

/** What became of an append. */
type Outcome = 'written' | 'not written' | 'taken back';

const isRefused = (group: { readonly state: string }): boolean => group.state === 'refused';

const refuseAll = (groups: readonly PendingCount[], cause: unknown): void => {
  for (const group of groups) if (group.state === 'writing') refuse(group, cause);
};

/** The stream is not where the append expects it. */
const isMoved = (error: unknown): boolean =>
  error instanceof WrongExpectedRevision || error instanceof StreamExpired;

/** The UTC hour of an instant, `YYYY-MM-DDTHH`; the last one is remembered. */
export const hourOf = (() => {
  let known = { number: -1, text: '' };
  return (at: number): string => {
    const number = Math.floor(at / HOUR);
    if (number !== known.number) known = { number, text: iso(at).slice(0, 13) };
    return known.text;
  };
})();
