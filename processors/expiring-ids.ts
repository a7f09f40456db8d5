import type pg from 'pg';
import { queryWithSynchronousCommit } from '../platform/postgres/transactions.ts';

/** The id of an item that a sweep deletes, as its expiry event names it. */
export interface ExpiringId {
  readonly id: string;
  readonly partner_id: string;
  readonly expires_at: Date;
}

/** Records durably which items a sweep is about to delete, so that a crash cannot lose their expiry events. */
export const noteExpiring = (pool: pg.Pool, kind: string, rows: readonly ExpiringId[]): Promise<void> =>
  queryWithSynchronousCommit(
    pool,
    `insert into work.expiring (kind, id, partner_id, expires_at)
     select $1, * from unnest($2::text[], $3::uuid[], $4::timestamptz[]) on conflict (kind, id) do nothing`,
    [
      kind,
      rows.map(({ id }) => id),
      rows.map(({ partner_id }) => partner_id),
      rows.map(({ expires_at }) => expires_at),
    ],
  );

/** Removes the records of items whose expiry events are projected. */
export const forgetExpiring = async (
  pool: pg.Pool,
  kind: string,
  rows: readonly ExpiringId[],
): Promise<void> => {
  await pool.query({
    name: 'forget_expiring',
    text: 'delete from work.expiring where kind = $1 and id = any ($2)',
    values: [kind, rows.map(({ id }) => id)],
  });
};

/**
 * Finds items that an earlier sweep deleted without appending their expiry events: recorded, but gone from the read model.
 * @param present SQL that selects, as `id`, those of the ids `$1` that the read model still holds
 */
export const readCutOff = async (pool: pg.Pool, kind: string, present: string): Promise<ExpiringId[]> => {
  const { rows } = await pool.query<ExpiringId>(
    'select id, partner_id, expires_at from work.expiring where kind = $1',
    [kind],
  );
  if (rows.length === 0) return [];
  const known = await pool.query<{ id: string }>(present, [rows.map(({ id }) => id)]);
  const ids = new Set(known.rows.map(({ id }) => id));
  return rows.filter(({ id }) => !ids.has(id));
};
