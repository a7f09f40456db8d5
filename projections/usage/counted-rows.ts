/** Rows of counts by hour, one for each stream that counted (`source`). */
import type pg from 'pg';

/** Its key, then numbers. The second part of the key is the hour (`YYYY-MM-DDTHH`). */
type Counted = readonly [key: string, hour: string, ...(string | number)[]];

export interface Row<Count extends Counted> {
  readonly count: Count;
  readonly source: string;
  /** Log position of the last event that counted. */
  readonly position: bigint;
  /** Totals replace all earlier counts; counts are added. */
  readonly absolute: boolean;
}

export type Rows<Count extends Counted> = Map<string, Row<Count>>;

/** Merges a count into the batch. `plus` null: the count replaces all earlier ones. */
export function put<Count extends Counted>(
  rows: Rows<Count>,
  { source, position }: Pick<Row<Count>, 'source' | 'position'>,
  count: Count,
  plus: ((sum: Count | undefined, row: Count) => Count) | null,
): void {
  const key = [source, ...count.filter((part) => typeof part === 'string')].join(' ');
  const before = rows.get(key);
  rows.set(
    key,
    plus
      ? { source, position, count: plus(before?.count, count), absolute: before?.absolute ?? false }
      : { source, position, count, absolute: true },
  );
}

const columns = <Count extends Counted>(rows: readonly Row<Count>[]): unknown[] => [
  rows.map(({ source }) => source),
  ...(rows[0]?.count ?? []).map((_, index) =>
    rows.map(({ count }) => (index === 1 ? `${count[1]}:00:00Z` : count[index])),
  ),
  rows.map(({ position }) => position),
];

/**
 * Writes the batch.
 * @param upsert makes the statement, with the sources as its first parameter, each part of the counts as another, and the
 * positions as its last
 */
export async function writeRows<Count extends Counted>(
  db: pg.ClientBase,
  name: string,
  upsert: (absolute: boolean) => string,
  rows: Rows<Count>,
): Promise<void> {
  for (const absolute of [true, false]) {
    const some = [...rows.values()].filter((row) => row.absolute === absolute);
    if (some.length === 0) continue;
    await db.query({ name: `${name} ${absolute}`, text: upsert(absolute), values: columns(some) });
  }
}

/**
 * Deletes hours that corrections have reduced to zero, as if they had never been counted, and records all corrected ones. `text`:
 * has the first `keys` of an upsert's parameters, then the positions.
 */
export async function deleteEmpty<Count extends Counted>(
  db: pg.ClientBase,
  name: string,
  text: string,
  keys: number,
  corrected: readonly Row<Count>[],
): Promise<void> {
  if (corrected.length === 0) return;
  const all = columns(corrected);
  await db.query({ name, text, values: [...all.slice(0, keys), all.at(-1)] });
}

/** The assignments of an upsert `as present`. */
export const sums = (names: readonly string[], absolute: boolean): string =>
  [
    ...names.map((name) => `${name} = excluded.${name}${absolute ? '' : ` + present.${name}`}`),
    'changed_position = excluded.changed_position',
  ].join(', ');
