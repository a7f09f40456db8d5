import type pg from 'pg';
import { aheadAfter } from '../../domain/kernel/ahead.ts';
import { DAY } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import { readTogether } from '../../platform/read-together.ts';

/** After this time without a login, a user's network is unknown again. */
const NETWORK_KEPT = 90 * DAY;
/** Ceiling of one user. Each login reads the table, which a user with many networks could otherwise fill. */
const MAX_NETWORKS = 1_000;

/** Stores the networks (as digests) from which users have logged in. */
export const createLoginNetworks = ({ pool, clock }: { readonly pool: pg.Pool; readonly clock: Clock }) => {
  /** By an id of 36 characters, a space and a network. */
  const findKnown = readTogether(async (keys) => {
    const { rows } = await pool.query<{ key: string }>({
      name: 'known_networks',
      text: `select asked.key from unnest($1::text[]) as asked (key)
             join work.login_network n
               on n.user_id = left(asked.key, 36)::uuid and n.network = substr(asked.key, 38)
             where n.used_at >= $2`,
      values: [keys, new Date(clock.now() - NETWORK_KEPT)],
    });
    return new Map(rows.map(({ key }) => [key, true]));
  });
  return {
    isKnown: async (userId: string, network: string): Promise<boolean> =>
      (await findKnown(`${userId} ${network}`)) ?? false,

    remember: async (userId: string, network: string): Promise<void> => {
      const now = clock.now();
      await pool.query('delete from work.login_network where used_at < $1 or used_at > $2', [
        new Date(now - NETWORK_KEPT),
        new Date(aheadAfter(now)),
      ]);
      await pool.query(
        `insert into work.login_network (user_id, network, used_at) values ($1, $2, $3)
       on conflict (user_id, network) do update set used_at = excluded.used_at`,
        [userId, network, new Date(now)],
      );
      await pool.query(
        `delete from work.login_network where user_id = $1 and network in (
         select network from work.login_network where user_id = $1 order by used_at desc offset ${MAX_NETWORKS})`,
        [userId],
      );
    },
  };
};
