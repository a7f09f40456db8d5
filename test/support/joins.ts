/** The joins that a reader of every table could make: times and positions beside words of two kinds. */
import type pg from 'pg';

/** Values by their column (`schema.table.path`), each with the visit whose word is in the same row. */
type Facts = Map<string, { readonly visit: number; readonly value: number }[]>;

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;
const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7/;

/** The time or position in a value: an instant, the time in an id, or a log position. */
const measured = (path: string, value: unknown): readonly ['time' | 'position', number] | null => {
  if (/position$/.test(path) && value !== null) return ['position', Number(value)];
  if (typeof value !== 'string') return null;
  const id = UUID_V7.exec(value);
  if (id) return ['time', Number.parseInt(`${id[1]}${id[2]}`, 16)];
  return INSTANT.test(value) ? ['time', Date.parse(value)] : null;
};

const leaves = (value: unknown, path: string): [string, unknown][] =>
  value !== null && typeof value === 'object'
    ? Object.entries(value).flatMap(([name, inner]) =>
        leaves(inner, Array.isArray(value) ? `${path}[]` : `${path}.${name}`),
      )
    : [[path, value]];

const readRows = async (pool: pg.Pool): Promise<{ table: string; row: object; text: string }[]> => {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('read', 'work', 'eventlog') order by 1`,
  );
  const all = [];
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: object }>(`select to_json(t) as row from ${name} t`);
    all.push(...rows.map(({ row }) => ({ table: name, row, text: JSON.stringify(row) })));
  }
  return all;
};

/** `words`: of each visit. */
const factsOf = (
  rows: Awaited<ReturnType<typeof readRows>>,
  words: readonly (readonly string[])[],
): Facts => {
  const facts: Facts = new Map();
  for (const { table, row, text } of rows) {
    for (const [visit, own] of words.entries()) {
      if (!own.some((word) => text.includes(word))) continue;
      for (const [path, leaf] of leaves(row, table)) {
        const found = measured(path, leaf);
        if (found === null) continue;
        const column = `${found[0]} ${path}`;
        facts.set(column, [...(facts.get(column) ?? []), { visit, value: found[1] }]);
      }
    }
  }
  return facts;
};

type Values = readonly { readonly visit: number; readonly value: number }[];

/** The visit of the one value that a rule picks; null when it picks none, or values of several visits. */
const owner = (picked: Values): number | null => {
  const visits = new Set(picked.map(({ visit }) => visit));
  return visits.size === 1 ? (picked[0]?.visit ?? null) : null;
};
const extreme = (values: Values, best: (...all: number[]) => number): Values =>
  values.filter(({ value }) => value === best(...values.map((one) => one.value)));

const RULES: Readonly<Record<string, (value: number, among: Values) => Values>> = {
  equal: (value, among) => among.filter((one) => one.value === value),
  before: (value, among) =>
    extreme(
      among.filter((one) => one.value < value),
      Math.max,
    ),
  after: (value, among) =>
    extreme(
      among.filter((one) => one.value > value),
      Math.min,
    ),
};

/** Whether the two columns, each in its own order, name the visits in the same order. */
const sameOrder = (left: Values, right: Values, visits: number): boolean => {
  const order = (values: Values) => values.toSorted((a, b) => a.value - b.value);
  const isStrict = (values: Values) =>
    values.length === visits && new Set(values.map(({ value }) => value)).size === visits;
  const names = (values: Values) =>
    order(values)
      .map(({ visit }) => visit)
      .join();
  return isStrict(left) && isStrict(right) && names(left) === names(right);
};

/**
 * Every way in which a column beside words of one kind links each visit to its words of the other kind: by equal
 * values, by the next value before or after, or by the order.
 */
export const findJoins = async (
  pool: pg.Pool,
  left: readonly (readonly string[])[],
  right: readonly (readonly string[])[],
): Promise<string[]> => {
  const rows = await readRows(pool);
  const together = rows.filter(({ text }) =>
    left.some((words, visit) =>
      [words, right[visit] ?? []].every((of) => of.some((word) => text.includes(word))),
    ),
  );
  const [ours, theirs] = [factsOf(rows, left), factsOf(rows, right)];
  const joins = [...new Set(together.map(({ table }) => `in one row of ${table}`))];
  for (const [column, values] of ours) {
    for (const [other, among] of theirs) {
      if (column.split(' ')[0] !== other.split(' ')[0]) continue;
      for (const [rule, pick] of Object.entries(RULES)) {
        const isJoin = left.every((_, visit) =>
          values.some((one) => one.visit === visit && owner(pick(one.value, among)) === visit),
        );
        if (isJoin) joins.push(`${column} ${rule} ${other}`);
      }
      if (sameOrder(values, among, left.length)) joins.push(`${column} in the order of ${other}`);
    }
  }
  return joins;
};
