import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { DAY } from '../domain/kernel/time.ts';
import { BackendTimeout } from '../http/errors/failures.ts';

/** What reads that must not miss what a caller knows of need. */
export interface Reads {
  readonly db: DatabasePool;
  /** Waits until the read models have all that the store has now; false after the time limit. */
  readonly waitForHead: () => Promise<boolean>;
}

/** @throws BackendTimeout if the read models stay behind */
export async function awaitReadModels({ waitForHead }: Reads): Promise<void> {
  if (!(await waitForHead())) throw new BackendTimeout('the read models are behind');
}

/** Reads a row, after a miss once more with the read models up to date. @throws BackendTimeout if they stay behind */
export async function readUpToDate<Row>(reads: Reads, read: () => Promise<Row | null>): Promise<Row | null> {
  const row = await read();
  if (row !== null) return row;
  await awaitReadModels(reads);
  return read();
}

/** Until then an expired item answers 410, then 404 (contract, Sessions). */
const REPORTED_AS_EXPIRED_MS = 60 * DAY;

interface Wanted<Kind> {
  readonly kind: Kind;
  readonly id: string;
  readonly partnerId: string;
  /** Milliseconds. */
  readonly now: number;
}

/**
 * Finds what has not expired, by the clock and not by what was swept; else says whether there was one.
 * @throws BackendTimeout rather than call unknown what may be there
 */
export async function findUnexpired<
  Row extends { readonly expires_at: string },
  Kind extends 'session' | 'reveal',
>(
  reads: Reads,
  { kind, id, partnerId, now }: Wanted<Kind>,
  read: () => Promise<Row | null>,
): Promise<Row | `${Kind}_expired` | `${Kind}_not_found`> {
  let row = await read();
  let expiredAt: string | null =
    row?.expires_at ??
    (await reads.db.maybeOneFirst(sql.type(z.object({ expired_at: z.string() }))`
      select expired_at from ${sql.identifier(['read', `expired_${kind}`])}
      where ${sql.identifier([`${kind}_id`])} = ${id} and partner_id = ${partnerId}`));
  if (expiredAt === null) {
    await awaitReadModels(reads);
    row = await read();
    expiredAt = row?.expires_at ?? null;
  }
  if (expiredAt === null || now >= Date.parse(expiredAt) + REPORTED_AS_EXPIRED_MS) return `${kind}_not_found`;
  return row !== null && now < Date.parse(expiredAt) ? row : `${kind}_expired`;
}

/** A list of columns. */
export const columnList = (names: readonly string[]) =>
  sql.join(
    names.map((name) => sql.identifier([name])),
    sql.fragment`, `,
  );

/** The columns that a row's schema names. */
export const columnsOf = (row: z.ZodObject) => columnList(Object.keys(row.shape));
