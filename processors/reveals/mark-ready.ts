import type pg from 'pg';
import { NIL } from 'uuid';
import { DURABLY } from '../../platform/durably.ts';

const PAGE = 5_000;

const MARK = `
  with page as materialized (
    select reveal_id from work.awaited_result
    where address_digest = $1 and not ready and reveal_id > $2::uuid order by reveal_id limit ${PAGE}),
  marked as (
    update work.awaited_result set ready = true from ${DURABLY} where reveal_id = any (array(select reveal_id from page)))
  select (select reveal_id from page order by reveal_id desc limit 1) as last, (select count(*)::int from page) as marked`;

/**
 * Marks the reveals that wait for an address as ready: its result is there. Page by page, each from where the one before ended,
 * because a partner may have millions of reveals of one address. `digest`: of the address.
 */
export const markReady = async (pool: pg.Pool, digest: string): Promise<void> => {
  for (let after: string = NIL, marked = PAGE; marked === PAGE; ) {
    const { rows } = await pool.query<{ last: string | null; marked: number }>({
      name: 'result_is_there',
      text: MARK,
      values: [digest, after],
    });
    marked = rows[0]?.marked ?? 0;
    after = rows[0]?.last ?? after;
  }
};
