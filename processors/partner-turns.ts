import type pg from 'pg';
import { NIL } from 'uuid';

/** A partner with expired items, and where its next turn begins. */
export interface Turn {
  readonly partner_id: string;
  /** `expires_at` of its last item as PostgreSQL text, which keeps its microseconds. */
  readonly cursor: string;
  readonly id: string;
}

/** The turns of a batch, and how many items each may take. */
export interface Turns {
  readonly turns: readonly Turn[];
  readonly share: number;
}

/** A batch has so few partners that each expiry event still names several ids. */
const MAX_PARTNERS = 100;

/** Returns the first turn of each partner. */
export const firstTurns = (partnerIds: readonly string[]): Turn[] =>
  partnerIds.map((partner_id) => ({ partner_id, cursor: '-infinity', id: NIL }));

/** Returns the turns of the next batch, which take at most `limit` items together. */
export const takeTurns = (waiting: readonly Turn[], limit: number): Turns => {
  const turns = waiting.slice(0, MAX_PARTNERS);
  return { turns, share: Math.max(1, Math.floor(limit / turns.length)) };
};

/**
 * Returns the turns that are left after a batch: partners that took less than their share have no more items, the others queue
 * up behind those that wait.
 * @param rows the items of the batch, each partner's in order
 */
export const afterTurns = (
  waiting: readonly Turn[],
  { turns, share }: Turns,
  rows: readonly Turn[],
): Turn[] => {
  const again = [...Map.groupBy(rows, ({ partner_id }) => partner_id).values()].flatMap((ofPartner) => {
    const last = ofPartner.at(-1);
    return last === undefined || ofPartner.length < share ? [] : [last];
  });
  return [...waiting.slice(turns.length), ...again];
};

/** Selects the partners with expired items. In random order, so that runs that end early leave out different partners. */
export const loadTurns = async (
  pool: Pick<pg.Pool, 'query'>,
  table: string,
  now: number,
): Promise<Turn[]> => {
  const { rows } = await pool.query<{ partner_id: string }>({
    name: `partners with expired ${table}`,
    text: partnersWithExpired(table),
    values: [new Date(now)],
  });
  return firstTurns(rows.map(({ partner_id }) => partner_id));
};

/** Steps along the index (partner_id, expires_at), because a partner may have millions of items. */
const partnersWithExpired = (table: string): string => `
  with recursive partner as (
    (select partner_id, expires_at from ${table} order by partner_id, expires_at limit 1)
    union all
    select next.* from partner p, lateral (
      select t.partner_id, t.expires_at from ${table} t
      where t.partner_id > p.partner_id order by t.partner_id, t.expires_at limit 1) next)
  select partner_id from partner where expires_at <= $1 order by random()`;

export interface ItemsOfTurns {
  readonly table: string;
  readonly id: string;
  readonly idType: 'uuid' | 'text';
  /** Further columns of the table's row `i`. */
  readonly columns: string;
}

/**
 * Returns SQL that selects the items of a batch: of each turn (`$4` partners, `$5` cursors, `$6` ids) at most `$7` that
 * expired by `$1`. It reads no other items, so `columns` say which of them may be deleted now. The partner stands in the bounds
 * too: where PostgreSQL knows of one partner alone, it would else go down an index without partners, and read all items of that
 * one for each other partner.
 */
export const itemsOfTurns = ({ table, id, idType, columns }: ItemsOfTurns): string => `
  select item.* from unnest($4::uuid[], $5::timestamptz[], $6::${idType}[]) as turn (partner_id, expires_at, id)
  cross join lateral (
    select i.${id} as id, i.partner_id, i.expires_at, i.expires_at::text as cursor, ${columns}
    from ${table} i
    where i.partner_id = turn.partner_id and (i.partner_id, i.expires_at) <= (turn.partner_id, $1::timestamptz)
      and (i.partner_id, i.expires_at, i.${id}) > (turn.partner_id, turn.expires_at, turn.id)
    order by i.expires_at, i.${id} limit $7) item
  order by item.expires_at, item.id`;

/** Returns the values of `$4` to `$7` of `itemsOfTurns`. */
export const turnValues = ({ turns, share }: Turns): unknown[] => [
  turns.map(({ partner_id }) => partner_id),
  turns.map(({ cursor }) => cursor),
  turns.map(({ id }) => id),
  share,
];
