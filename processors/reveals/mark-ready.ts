import type pg from 'pg';
import { NIL } from 'uuid';
import { DURABLY } from '../../platform/durably.ts';

const PAGE = 5_000;
/** Pages of one address in a turn: about half a second's work. */
const PAGES = 4;

const MARK = `
  with page as materialized (
    select reveal_id from work.awaited_result
    where address_digest = $1 and (address_digest, reveal_id) > ($1, $2::uuid) and not ready
    order by reveal_id limit ${PAGE}),
  marked as (
    update work.awaited_result set ready = true from ${DURABLY} where reveal_id = any (array(select reveal_id from page)))
  select (select reveal_id from page order by reveal_id desc limit 1) as last, (select count(*)::int from page) as marked`;

/** @returns whether none is left. Each page begins where the one before ended, past what that has left behind in the index. */
const markPages = async (pool: pg.Pool, digest: string): Promise<boolean> => {
  for (let pages = 0, after: string = NIL; pages < PAGES; pages += 1) {
    const { rows } = await pool.query<{ last: string | null; marked: number }>({
      name: 'result_is_there',
      text: MARK,
      values: [digest, after],
    });
    const { last = null, marked = 0 } = rows[0] ?? {};
    if (last === null || marked < PAGE) return true;
    after = last;
  }
  return false;
};

/**
 * Marks the reveals that wait for an address as ready: its result is there. A partner may have millions of reveals of one
 * address: `markLeft` marks those beyond the first 20,000. `digest`: of the address.
 */
export const markReady = async (pool: pg.Pool, digest: string): Promise<void> => {
  if (await markPages(pool, digest)) return;
  await pool.query(
    `insert into work.arrived_result (address_digest) select $1 from ${DURABLY} on conflict do nothing`,
    [digest],
  );
};

/** Marks more of what `markReady` has left, of each address in turn, until all are marked or `isOver`. */
export const markLeft = async (pool: pg.Pool, isOver: () => boolean): Promise<void> => {
  const { rows } = await pool.query<{ address_digest: string }>(
    'select address_digest from work.arrived_result',
  );
  let digests = rows.map(({ address_digest }) => address_digest);
  while (digests.length > 0) {
    const again: string[] = [];
    for (const digest of digests) {
      if (isOver()) return;
      if (await markPages(pool, digest))
        await pool.query('delete from work.arrived_result where address_digest = $1', [digest]);
      else again.push(digest);
    }
    digests = again;
  }
};
