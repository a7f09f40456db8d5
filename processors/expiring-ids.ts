import type pg from 'pg';
import { durably } from '../platform/durably.ts';

/** Something that a sweep deletes, as the event about it names it. */
export interface ExpiringId {
  readonly id: string;
  readonly partner_id: string;
  readonly expires_at: Date;
}

/** Notes durably what of a kind a sweep is about to delete. */
export const noteExpiring = (pool: pg.Pool, kind: string, rows: readonly ExpiringId[]): Promise<void> =>
  durably(
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

/** Removes the notes of what is deleted and written down. */
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
 * What an earlier sweep has deleted and not written down: it was noted, and the read model has no row of it any more.
 * @param present selects from the read model, as `id`, those of the ids `$1` that it has
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
