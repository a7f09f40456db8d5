/** The count was not durable in time (contract, Requests 11). Its answer says so and is not counted. */
export class CountNotDurable extends Error {}

/** How rows are keyed and added up; a row begins with its key and hour. */
export interface Sums<Row> {
  keyOf(row: Row): string;
  plus(sum: Row | undefined, row: Row): Row;
}

/**
 * Counts that share one promise: those of one UTC day within a few milliseconds, or 100 while an append is running.
 *
 * waiting: not sent, or known not to be written. writing: sent, outcome unknown. durable: written and confirmed.
 * refused: reported as not counted; if it is written after all, a correction reverses it.
 */
export interface Group<Row> extends PendingCount {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly rows: Map<string, Row>;
  answers: number;
}

/** The state of a group, independent of its rows. */
export interface PendingCount {
  state: 'waiting' | 'writing' | 'durable' | 'refused';
  readonly openedAt: number;
  readonly durable: PromiseWithResolvers<void>;
}

/** How long a group accepts counts, milliseconds. */
export const GROUP_MS = 100;
/** Limit of a group and of an append, far below 1 MiB. */
const MAX_ROWS = 5_000;
/** A count is refused if its append has not started after this time, milliseconds. */
const WAITING_MS = 2_000;
/** A count is refused if its append is not confirmed after this time, milliseconds. */
const WRITING_MS = 4_000;

export const refuse = (group: PendingCount, cause?: unknown): void => {
  group.state = 'refused';
  group.durable.reject(new CountNotDurable('a count was not durable in time', { cause }));
};

/** Refuses groups that have timed out. `now`: monotonic, milliseconds. */
export const expire = (groups: readonly PendingCount[], now: number): void => {
  for (const group of groups) {
    const limitMs = { waiting: WAITING_MS, writing: WRITING_MS, durable: null, refused: null }[group.state];
    if (limitMs !== null && now - group.openedAt >= limitMs) refuse(group);
  }
};

export const answersOf = (groups: readonly { readonly answers: number }[]): number =>
  groups.reduce((sum, { answers }) => sum + answers, 0);

/** Adds up the rows of all groups. */
export const rowsOf = <Row>(groups: readonly Group<Row>[], { plus }: Sums<Row>): Row[] => {
  const sums = new Map<string, Row>();
  for (const { rows } of groups) for (const [key, row] of rows) sums.set(key, plus(sums.get(key), row));
  return [...sums.values()];
};

export type WaitingGroups<Row extends readonly [string, string, ...unknown[]]> = ReturnType<
  typeof createWaitingGroups<Row>
>;

/** Holds the groups whose append has not started, oldest first. */
export const createWaitingGroups = <Row extends readonly [string, string, ...unknown[]]>({
  keyOf,
  plus,
}: Sums<Row>) => {
  let waiting: Group<Row>[] = [];

  const openGroup = (day: string): Group<Row> => {
    const now = performance.now();
    const last = waiting.at(-1);
    const isOpen = last?.day === day && last.rows.size < MAX_ROWS && now - last.openedAt < GROUP_MS;
    if (last && isOpen) return last;
    const durable = Promise.withResolvers<void>();
    // Without a caller, the rejection would be unhandled and end the process.
    durable.promise.catch(() => undefined);
    const group: Group<Row> = { state: 'waiting', openedAt: now, day, rows: new Map(), answers: 0, durable };
    waiting.push(group);
    return group;
  };

  return {
    answers: (): number => answersOf(waiting),
    isEmpty: (): boolean => waiting.length === 0,

    add: (row: Row): Group<Row> => {
      const group = openGroup(row[1].slice(0, 10));
      const key = keyOf(row);
      group.rows.set(key, plus(group.rows.get(key), row));
      group.answers += 1;
      return group;
    },

    /** Takes the groups of one append: one day, within `MAX_ROWS`. */
    take: (): Group<Row>[] => {
      let rows = 0;
      const end = waiting.findIndex((group, index) => {
        rows += group.rows.size;
        return group.day !== waiting[0]?.day || (index > 0 && rows > MAX_ROWS);
      });
      return waiting.splice(0, end < 0 ? waiting.length : end);
    },

    /** Puts back groups that were certainly not written. */
    putBack: (groups: readonly Group<Row>[]): void => {
      for (const group of groups) group.state = 'waiting';
      waiting.unshift(...groups);
    },

    expire: (now: number): void => {
      expire(waiting, now);
      waiting = waiting.filter(({ state }) => state === 'waiting');
    },
  };
};
