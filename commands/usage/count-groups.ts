/** The count was not durable in time (decisions, Requests in general). Its answer says so and is not counted. */
export class CountNotDurable extends Error {}

/** How rows, which begin with their key and hour, are added up. */
export interface Sums<Row> {
  keyOf(row: Row): string;
  plus(sum: Row | undefined, row: Row): Row;
}

/**
 * Counts that share a promise: those of one UTC day within a few milliseconds, or 100 while an append is under way.
 *
 * waiting: not sent, or known not to be written. writing: sent, outcome not known. durable: written, and told so.
 * refused: told as not counted; if it is written all the same, a correction takes it back.
 */
export interface Group<Row> extends PendingCount {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly rows: Map<string, Row>;
  answers: number;
}

/** What does not depend on what is counted. */
export interface PendingCount {
  state: 'waiting' | 'writing' | 'durable' | 'refused';
  readonly openedAt: number;
  readonly durable: PromiseWithResolvers<void>;
}

/** How long a group is open for more counts, milliseconds. */
export const GROUP_MS = 100;
/** Of a group and of an append: far below a MiB. */
const MOST_ROWS = 5_000;
/** A count is refused when its append has not begun by then, milliseconds. */
const WAITING_MS = 2_000;
/** And when an append that has begun is not known to be written by then. */
const WRITING_MS = 4_000;

export const refuse = (group: PendingCount, cause?: unknown): void => {
  group.state = 'refused';
  group.durable.reject(new CountNotDurable('a count was not durable in time', { cause }));
};

/** Refuses the groups whose time is over. `now`: of the monotonic clock. */
export const expire = (groups: readonly PendingCount[], now: number): void => {
  for (const group of groups) {
    const limitMs = { waiting: WAITING_MS, writing: WRITING_MS, durable: null, refused: null }[group.state];
    if (limitMs !== null && now - group.openedAt >= limitMs) refuse(group);
  }
};

export const answersOf = (groups: readonly { readonly answers: number }[]): number =>
  groups.reduce((sum, { answers }) => sum + answers, 0);

/** The rows of all groups, added up. */
export const rowsOf = <Row>(groups: readonly Group<Row>[], { plus }: Sums<Row>): Row[] => {
  const sums = new Map<string, Row>();
  for (const { rows } of groups) for (const [key, row] of rows) sums.set(key, plus(sums.get(key), row));
  return [...sums.values()];
};

/** The groups of which no append is under way, the oldest first. */
export const createWaitingGroups = <Row extends readonly [string, string, ...unknown[]]>({
  keyOf,
  plus,
}: Sums<Row>) => {
  let waiting: Group<Row>[] = [];

  const openGroup = (day: string): Group<Row> => {
    const now = performance.now();
    const last = waiting.at(-1);
    const takesMore = last?.day === day && last.rows.size < MOST_ROWS && now - last.openedAt < GROUP_MS;
    if (last && takesMore) return last;
    const durable = Promise.withResolvers<void>();
    // A group whose callers have all gone must not end the process.
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

    /** Takes groups that one append can hold: of one day. */
    take: (): Group<Row>[] => {
      let rows = 0;
      const end = waiting.findIndex((group, index) => {
        rows += group.rows.size;
        return group.day !== waiting[0]?.day || (index > 0 && rows > MOST_ROWS);
      });
      return waiting.splice(0, end < 0 ? waiting.length : end);
    },

    /** Puts back groups that are known not to be written. */
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
